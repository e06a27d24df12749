"""Nothing survives the supervisor, not even when it is killed with SIGKILL.

A shell of one megabyte reads, on a pipe that only the supervisor holds open, which process groups
are alive; when the pipe closes, for whatever reason, it kills the last ones it was told of. Linux's
PR_SET_PDEATHSIG would reach each child but not the child's own children, exists nowhere else, and
needs code between fork and exec. What that would see and this does not: a child that was started
in the last milliseconds before the kill.
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
        self._shell = subprocess.Popen(  # noqa: S603 - a script of ours
            ["/bin/sh", "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the terminal must not reach it
        )

    def watch(self, groups: Iterable[int]) -> None:
        """From now on these are the groups that would have to end."""
        assert self._shell.stdin is not None
        # Without its watchdog the workbench runs all the same.
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.write(" ".join(map(str, groups)).encode() + b"\n")
            self._shell.stdin.flush()

    def close(self) -> None:
        assert self._shell.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.close()
        self._shell.wait()
