"""Strangers' files are read in a process of their own, with an end to its memory, time and output.

    python -m apps.core.sandbox CPU_SECONDS MEMORY_BYTES MODULE ARGUMENT...

runs a module under those limits; `lines` and `output` start that and read what it prints. The
module gets none of our environment: no key, no password. Pure.
"""

import os
import resource
import runpy
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

BASE = Path(__file__).resolve().parent.parent.parent
# Of such processes at a time: each may take all the memory it is allowed.
AT_ONCE = 4
PATIENCE_SECONDS = 30.0
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "VIRTUAL_ENV")

places = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True)
class Limits:
    """Limits of a sandboxed process."""

    cpu_seconds: int
    memory_bytes: int
    seconds: float
    """By the clock."""
    output_bytes: int
    line_bytes: int = 1024**2
    """Of one line, where what it prints is read by lines."""


class Exceeded(Exception):
    """The process took more than it may, or was killed. What it printed until then was given."""


class Failed(Exception):
    """The process ended with an exit code of its own."""

    def __init__(self, code: int) -> None:
        super().__init__(f"It ended with {code}.")
        self.code = code


class Busy(Exception):
    """Too many files are being read. The message says what to do."""

    def __init__(self) -> None:
        super().__init__("Too many files are being read at the moment. Try again in a minute.")


def output(module: str, *arguments: str, limits: Limits, file: IO[bytes] | None = None) -> bytes:
    """All that a module prints.

    Args:
        file: what it reads as its standard input: a real file, from where it stands.

    Raises:
        Exceeded, Failed, Busy
    """
    with _running(module, arguments, limits, file) as printed:
        told = printed.read(limits.output_bytes + 1)
        if len(told) > limits.output_bytes:
            raise Exceeded
    return told


def lines(
    module: str, *arguments: str, limits: Limits, file: IO[bytes] | None = None
) -> Generator[bytes, None, None]:
    """Yield the lines that a module prints, as they come. Closing the iterator ends the process.

    Raises:
        Exceeded, Failed, Busy
    """
    left = limits.output_bytes
    with _running(module, arguments, limits, file) as printed:
        while line := printed.readline(min(left, limits.line_bytes) + 1):
            left -= len(line)
            if left < 0 or len(line) > limits.line_bytes:
                raise Exceeded
            yield line


def _start(
    module: str, arguments: Sequence[str], limits: Limits, file: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own modules
        [
            *(sys.executable, "-m", "apps.core.sandbox"),
            *(str(limits.cpu_seconds), str(limits.memory_bytes), module, *arguments),
        ],
        cwd=BASE,
        env={name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ},
        stdin=subprocess.DEVNULL if file is None else file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def _running(
    module: str, arguments: Sequence[str], limits: Limits, file: IO[bytes] | None
) -> Iterator[IO[bytes]]:
    if not places.acquire(timeout=PATIENCE_SECONDS):
        raise Busy
    try:
        process = _start(module, arguments, limits, file)
        assert process.stdout is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        clock = threading.Timer(limits.seconds, end)
        clock.daemon = True
        clock.start()
        try:
            yield process.stdout
            code = process.wait()
        finally:
            clock.cancel()
            process.kill()
            process.stdout.close()
            process.wait()
    finally:
        places.release()
    if is_late.is_set() or code < 0:
        raise Exceeded
    if code:
        raise Failed(code)


def main(cpu_seconds: str, memory_bytes: str, module: str, *arguments: str) -> None:
    for kind, most in ((resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_AS, memory_bytes)):
        with suppress(ValueError, OSError):  # macOS knows no limit of a process's memory
            resource.setrlimit(kind, (int(most), int(most)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
