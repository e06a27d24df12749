"""Kills all children when the supervisor is killed, even by SIGKILL.

A shell of one megabyte reads the living process groups from a pipe that only the supervisor holds
open. When the pipe closes, the shell kills the last groups it read. Linux's PR_SET_PDEATHSIG would
reach each child but not its own children, exists on Linux alone, and needs code between fork and
exec. It would also reach a child started in the last milliseconds before the kill; this does not.
"""

import contextlib
import subprocess
from collections.abc import Iterable

SCRIPT = """
groups=
while read -r line; do groups=$line; done
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class Watchdog:
    def __init__(self) -> None:
        self._shell = subprocess.Popen(  # noqa: S603 - a constant script
            ["/bin/sh", "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the terminal must not reach it
        )

    def watch(self, groups: Iterable[int]) -> None:
        """Replace the process groups to kill."""
        assert self._shell.stdin is not None
        # Workbench also runs without its watchdog.
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.write(" ".join(map(str, groups)).encode() + b"\n")
            self._shell.stdin.flush()

    def close(self) -> None:
        assert self._shell.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.close()
        self._shell.wait()
