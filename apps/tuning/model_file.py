"""Reads the shape of a model from its file, or from the first of its parts."""

import re
from pathlib import Path

from apps.tuning.errors import PlanError
from apps.tuning.planner.model.gguf_header import HEADER_BYTES, read_header
from apps.tuning.planner.model.model_shape import ModelShape, read_shape

_PART = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")


def read_model_file(path: Path) -> ModelShape:
    """Read the header alone, however large the file is.

    Raises:
        PlanError: the file cannot be read, or is no model.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would never end
            raise PlanError(f"{path} is no file.")
        with path.open("rb") as file:
            header = read_header(file.read(HEADER_BYTES))
        return read_shape(header, file_bytes=model_bytes(path))
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}.") from error


def model_bytes(path: Path) -> int:
    """Bytes of a model, in all of its parts.

    Raises:
        PlanError: the file is missing.
    """
    found = _PART.search(path.name)
    parts = [path]
    if found is not None:
        stem = path.name[: found.start()]
        parts = [
            other
            for other in path.parent.iterdir()
            if other.name.startswith(stem) and _PART.fullmatch(other.name[len(stem) :])
        ]
    try:
        return sum(part.stat().st_size for part in parts)
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}.") from error
