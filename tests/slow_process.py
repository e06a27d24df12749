"""A process that is let run for a tenth of the time only."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

RUNS = 0.01  # seconds at a time
RESTS = 9  # times as long as it ran


@contextmanager
def slowed(pid: int, *, group: bool = False) -> Iterator[None]:
    """Let it run for a tenth of the time, so that its answers outlast what a test does to them.

    A tiny model writes thousands of tokens in a second, which a busy machine takes to notice the
    first one. Another process does it, as a thread of a test that has much to do may wait for its
    turn; however late that one hears that the turn is over, it rests nine times as long.

    Args:
        group: `pid` is that of a process group.
    """
    command = [sys.executable, "-S", __file__, str(pid), "group" if group else "process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slower:
        assert slower.stdin
        assert slower.stdout
        slower.stdout.read(1)  # it rests
        try:
            yield
        finally:
            slower.stdin.close()


def slow(pid: int, *, group: bool) -> None:
    """Stop and continue it in turns until standard input ends or it is gone."""
    send = os.killpg if group else os.kill

    def is_over(seconds: float) -> bool:
        return bool(select.select([sys.stdin], [], [], seconds)[0])

    rest = RESTS * RUNS
    try:
        send(pid, signal.SIGSTOP)
        os.write(1, b".")  # once: nobody reads any more when it is over
        while not is_over(rest):
            began = time.monotonic()
            send(pid, signal.SIGCONT)
            if is_over(RUNS):
                return
            send(pid, signal.SIGSTOP)
            rest = RESTS * (time.monotonic() - began)
    except ProcessLookupError:
        pass
    finally:
        with suppress(ProcessLookupError):
            send(pid, signal.SIGCONT)


if __name__ == "__main__":
    slow(int(sys.argv[1]), group=sys.argv[2] == "group")
