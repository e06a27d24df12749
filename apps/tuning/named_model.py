"""A model by its name: a path on this machine, or `owner/repo:file.gguf` on Hugging Face."""

import asyncio
from pathlib import Path, PurePath

from apps.tuning.hub_file import find_hub_file, read_hub_shape
from apps.tuning.model_file import read_model_file
from apps.tuning.planner.flags import Files
from apps.tuning.planner.model.model_shape import ModelShape


def read_named_model(name: str) -> ModelShape:
    """Read the shape of a file here; if none has this name, of one on Hugging Face.

    Raises:
        PlanError: there is no such file, or it is no model.
    """
    hub_file = find_hub_file(name)
    if hub_file is None or Path(name).exists():
        return read_model_file(Path(name))
    return asyncio.run(read_hub_shape(hub_file))


def files_of(name: str, *others: str | None) -> Files:
    """Return the files that a command names: a path as it is, of Hugging Face the file's name."""
    hub_file = find_hub_file(name)
    return Files(PurePath(hub_file.path).name if hub_file else name, *others)
