"""The whole workbench as a person starts it, for tests that walk through it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from apps.embedded.model_files.embedding_model import prepare
from tests.llama_process import free_port
from tests.stack.database import NAME, migrated_database
from tests.stack.processes import command_of, kill_all, processes_of
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
READY_LINE = re.compile(r"Workbench is ready: (?P<login>(?P<base>http://[^/]+)/\S+)")
LOG_LINES = 60  # of a start that failed
UP = ("-m", "apps.embedded")
# What a person may have set in his shell, and a test must not inherit.
OURS = re.compile(r"(WORKBENCH|LLM|EMBED|REDIS|DATABASE|CELERY|DJANGO)_")


class NotReady(Exception):
    """It ended, or took too long, before it printed its address. The message is what it said."""


class Stack:
    """What `make run` starts, in a data folder and on a port of its own.

    with Stack() as stack:
        page.goto(stack.login_url)  # its form is sent by a script
    """

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        *,
        data: Path | None = None,
        ready_within: float = 180.0,
        has_tables: bool = True,
    ) -> None:
        """`env` comes on top; `data` is kept at the end, a folder of our own is not.

        A folder without a database gets one with all tables, unless `has_tables` is false.
        """
        self._own_data = data is None
        self.data = data or Path(tempfile.mkdtemp(prefix="workbench-"))
        self.port = free_port()
        self.env = clean_env() | {
            "WORKBENCH_DATA": str(self.data),
            "WORKBENCH_PORT": str(self.port),
            "WORKBENCH_LLAMA_SERVER": "bundled",  # whatever this machine has
        }
        self.env |= env or {}
        if not self.env.keys() & {"WORKBENCH_EMBED_MODEL", "EMBED_BASE_URL"}:
            self.env["WORKBENCH_EMBED_MODEL"] = str(cached_embedding_model())
        if has_tables and not (self.data / NAME).exists():
            made = migrated_database(ROOT, cache(), clean_env())
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy(made, self.data / NAME)  # as private as it is
        self.url = ""
        self.login_url = ""
        self._ready_within = ready_within
        self._said: list[str] = []

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, *UP],
            cwd=ROOT,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._ready = threading.Event()
        self._reader.start()
        if not self._ready.wait(self._ready_within) or not self.url:
            self.stop()
            raise NotReady(self.said() + "".join(self.log().splitlines(keepends=True)[-LOG_LINES:]))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        code = self.stop()
        survivors = self.processes()
        kill_all(survivors)
        if error is None:
            assert not survivors, f"survived the end: {survivors}"
            assert code in (0, -signal.SIGKILL), f"exit code {code}: {self.said()}"
        if self._own_data:
            shutil.rmtree(self.data)

    def stop(self) -> int:
        """Press Ctrl-C and wait for the end; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._reader.join(timeout=5)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def said(self) -> str:
        """What it wrote to the terminal."""
        return "".join(self._said)

    def log(self) -> str:
        """What its processes wrote."""
        log = self.data / "logs" / "workbench.log"
        return log.read_text(encoding="utf-8") if log.exists() else ""

    def processes(self, name: str = "") -> list[psutil.Process]:
        """Those that belong to this data folder, or of them those with `name` in their command."""
        return [process for process in processes_of(self.data) if name in command_of(process)]

    def wait_for_log(self, text: str, *, within: float = 180.0) -> None:
        wait_until(lambda: text in self.log(), within=within, what=f"{text!r} in the log")

    def manage(self, *arguments: str) -> str:
        """What a `manage.py` command prints, run beside the stack on its database and Redis."""
        children = self.processes("uvicorn")
        env = children[0].environ() if children else self.env
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.append(line)
            if found := READY_LINE.search(line):
                self.url, self.login_url = found["base"], found["login"]
                self._ready.set()
        self._ready.set()


def clean_env() -> dict[str, str]:
    """The environment without any setting of the workbench."""
    return {name: value for name, value in os.environ.items() if not OURS.match(name)}


def cached_embedding_model() -> Path:
    """Prepared once for all runs of the tests."""
    return prepare(cache(), lambda line: None)


def cache() -> Path:
    return Path(os.environ.get("WORKBENCH_TEST_CACHE") or ROOT / ".cache")
