"""Compares model files with the memory that is free, before llama.cpp is started with them."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from apps.embedded.errors import StartError
from apps.embedded.llama_program import LlamaProgram

MEMINFO = Path("/proc/meminfo")
# The parts of a model that was split: "name-00001-of-00003.gguf".
_PART = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")


def check_memory(program: LlamaProgram, models: Iterable[Path]) -> None:
    """Refuse the largest model if it cannot fit into all free memory together.

    Its context needs memory too, so a model that passes may still be too large.

    Raises:
        StartError: it cannot fit.
    """
    free = free_memory()
    if free is None:
        return
    on_devices = sum(device.free_bytes for device in program.devices)
    for model in models:
        size = file_size(model)
        if size > free + on_devices:
            where = f"{_gib(free)} of memory"
            if program.devices:
                where += f" and {_gib(on_devices)} on {program.device}"
            raise StartError(
                f"The model {model.name} has {_gib(size)}, but only {where} is free."
                " Choose a smaller one or a smaller quantisation (WORKBENCH_CHAT_MODEL)."
            )


def models_that_fit(program: LlamaProgram, models: Iterable[Path]) -> int:
    """Count the models that may be in memory at once: all, if they fit together, else one."""
    sizes = [file_size(model) for model in models]
    room = sum(device.free_bytes for device in program.devices) or free_memory()
    # A third on top, for the contexts and for everybody else.
    return len(sizes) if room is not None and sum(sizes) * 4 / 3 <= room else 1


def file_size(model: Path) -> int:
    """Bytes of a model, in all of its parts."""
    found = _PART.search(model.name)
    if found is None:
        return model.stat().st_size
    beside = model.parent.glob(_PART.sub(f"-*-of-{found[1]}.gguf", model.name))
    return sum(part.stat().st_size for part in beside)


def free_memory() -> int | None:
    """Bytes of main memory that processes can have now; None where the system does not say."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        return _physical_memory()
    return int(found[1]) * 1024 if found else None


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # a system without these names
        return None


def _gib(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB"
