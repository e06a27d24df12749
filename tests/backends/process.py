"""A program that runs in a process group of its own, while a `with` block lasts."""

import os
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.slow_process import slowed
from tests.stack import clean_env
from tests.waiting import wait_until

READY_WITHIN = 180.0  # seconds; LiteLLM takes half a minute on a busy machine
LOG_CHARACTERS = 3_000


class ProgramProcess:
    """Kept on the same address over restarts.

    Args:
        ready_url: answers with a status under 500 as soon as the program is ready.
        folder: where it works, and where its log stays.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        ready_url: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        name: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.command = list(command)
        self.name = name or Path(command[0]).name
        self.ready_url = ready_url
        self.folder = folder
        self.log_file = folder / f"{self.name}.log"
        self._environment = clean_env() | dict(environment or {})
        self._tls = tls
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_until(self._has_started, within=READY_WITHIN, what=self.name)
        except AssertionError as error:
            self.kill()
            raise RuntimeError(f"{self.name} did not start:\n{self.log()}") from error

    def _has_started(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "it ended"
        try:
            urllib.request.urlopen(self.ready_url, timeout=5, context=self._tls).close()
        except urllib.error.HTTPError as error:
            error.close()
            return error.code < 500
        except OSError:
            return False
        return True

    @property
    def pid(self) -> int:
        """Its process, while it runs."""
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    def kill(self) -> None:
        """End it and all that it started, as a crash of the machine would."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def slowed(self) -> AbstractContextManager[None]:
        """Let it run for a tenth of the time while the block lasts, also if it is killed there."""
        return slowed(self.pid, group=True)

    def log(self) -> str:
        """Return the last lines that it wrote."""
        return self.log_file.read_text(errors="replace")[-LOG_CHARACTERS:]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
