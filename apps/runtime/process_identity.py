"""Which process this is, said so that others on its machine can see whether it is still there."""

import os
import socket
from functools import cache
from pathlib import Path


def name() -> str:
    """Of this process: no other has it, neither on another machine nor at another time."""
    return _name_of(os.getpid())  # a forked process is another one


def is_gone(other: str) -> bool:
    """Whether a process of that name has ended. False where that cannot be seen from here."""
    place, _, process = other.rpartition("/")[0].rpartition("/")
    if place != _place() or not process.isdecimal():
        return False
    return f"{place}/{process}/{_started(int(process))}" != other


@cache
def _place() -> str:
    """Where process numbers mean what they mean here; "" where that cannot be told."""
    try:
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # no Linux
        return ""


@cache
def _name_of(process: int) -> str:
    return f"{_place()}/{process}/{_started(process)}"


def _started(process: int) -> str:
    """When it began, in the kernel's ticks; "" where there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    # The command may have blanks and brackets in it: what follows the last bracket has not.
    state, *rest = stat.rpartition(")")[2].split()
    return "" if state in "ZX" else rest[18]
