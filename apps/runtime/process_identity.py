"""The identity of a process, so that others on its machine can see that it has ended.

Buys: work of a killed process is taken over at once, not when its lease lapses (15 s for
jobs). Linux only, by what the kernel reports: the boot, the PID namespace (a container's
own), the process number and its start. Elsewhere, and of other machines, nothing is known.
"""

import os
from functools import cache
from pathlib import Path

_PROC = Path("/proc")


def current_process_id() -> str:
    """Return the identity of this process, unique across machines and time; "" if unknown."""
    return _identity(os.getpid())  # a forked process is another one


def has_exited(identity: str) -> bool:
    """True if that process is known to have ended; False where that cannot be seen from here."""
    machine, _, process = identity.rpartition("/")[0].rpartition("/")
    if not machine or machine != _machine() or not process.isdecimal():
        return False
    return _identity.__wrapped__(int(process)) != identity


@cache
def _identity(process: int) -> str:
    started = _started(process)
    return f"{_machine()}/{process}/{started}" if _machine() and started else ""


@cache
def _machine() -> str:
    """The place where process numbers have this meaning; "" where that is unknown."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(process: int) -> str:
    """Return the start of a living process, in kernel ticks; "" if none has that number."""
    try:
        stat = (_PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The command may contain blanks and brackets; the fields follow the last bracket.
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in {"Z", "X"} else fields[18]
