"""The header of a server's model file, where both are on this machine."""

import asyncio
import ipaddress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from apps.tuning.errors import PlanError

if TYPE_CHECKING:
    from apps.tuning.planner.model.model_shape import ModelShape

MODEL = frozenset({"-m", "--model"})


async def read_local_model(base_url: str, path: str, command: str) -> "ModelShape | None":
    """Read what a server's model is; None where its file is not on this machine.

    Args:
        path: of the file, as the server reports it; "": as its command names it.
    """
    if not path:
        path = next((value for flag, value in pairwise(command.split()) if flag in MODEL), "")
    if not is_loopback(base_url) or not Path(path).is_absolute():
        return None
    return await asyncio.to_thread(_read, Path(path))


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _read(path: Path) -> "ModelShape | None":
    from apps.tuning.model_file import read_model_file  # every process would import gguf

    try:
        return read_model_file(path) if path.is_file() else None
    except (PlanError, OSError):  # another machine's path behind a tunnel, or no right to read it
        return None
