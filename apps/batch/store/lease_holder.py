"""Which process holds a lease, so that one on the same machine can see that it is gone.

On Linux only, by what the kernel says of itself: the boot, the PID namespace (a container's own),
the process and when it began. Elsewhere, and of another machine, nobody can tell: the lease has to
lapse.
"""

import os
from functools import cache
from pathlib import Path

_PROC = Path("/proc")


@cache
def _here() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def myself() -> str:
    """This process; empty where it could not be recognised."""
    pid = os.getpid()
    began = _began(pid)
    return f"{_here()}/{pid}/{began}" if _here() and began else ""


def is_gone(holder: str) -> bool:
    """Whether that process is known to have ended."""
    if not holder or not _here() or not holder.startswith(f"{_here()}/"):
        return False
    pid, began = holder.rsplit("/", 2)[1:]
    return _began(int(pid)) != began


def _began(pid: int) -> str:
    """When a living process began, in the kernel's ticks; empty of one that has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()  # its name may hold anything
    return "" if state in {"Z", "X"} else fields[18]
