"""All that works on a job, as processes to be killed: Redis, model server, pumps, worker, beat."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import redis
from django.db import connection

from apps.embedded.processes.redis_server import find_binary
from tests.faults.model_server import BEGIN, CUT, END, most_of
from tests.llama_process import free_port
from tests.waiting import wait_until

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parent.parent.parent
CELERY = (sys.executable, "-m", "celery", "-A", "workbench")


def database_url() -> str:
    """The test database, as a process of its own is told of it."""
    at = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{at['NAME']}"
    login = f"{quote(at['USER'])}:{quote(at['PASSWORD'])}"
    return f"postgres://{login}@{quote(at['HOST'], safe='')}:{at['PORT'] or 5432}/{at['NAME']}"


@dataclass
class Group:
    """A process and all it starts, in a process group of their own."""

    command: Sequence[str]
    env: dict[str, str]
    log: Path
    folder: Path = ROOT
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=os.environ | self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """kill -9, all at once."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@dataclass
class Seen:
    """What the model server's log says."""

    begun: Counter[int] = field(default_factory=Counter)
    ended: Counter[int] = field(default_factory=Counter)
    cut: Counter[int] = field(default_factory=Counter)
    most: int = 0


class Plant:
    """Runs while the `with` block lasts. `redis.process` and the like are there to be killed."""

    def __init__(self, folder: Path, *, slots: int, processes: int = 2) -> None:
        self.folder = folder
        self.port = free_port()
        socket = folder / "redis.sock"
        self.redis_client = redis.Redis(unix_socket_path=str(socket))
        env = {
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
            "DATABASE_URL": database_url(),
            "REDIS_URL": f"unix://{socket}?db=0",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        log = folder / "log"
        self.redis = Group(
            [
                *(find_binary(), "--port", "0", "--unixsocket", str(socket)),
                # As the embedded one: what happened a second ago is there again.
                *("--save", "", "--appendonly", "yes", "--appendfsync", "everysec"),
                *("--dir", str(folder), "--loglevel", "warning"),
            ],
            {},
            log,
        )
        self.events = folder / "events"
        self.model = Group(
            [
                *(sys.executable, "-m", "tests.faults.model_server"),
                *(str(self.port), str(self.events), str(slots)),
            ],
            {},
            log,
        )
        self.pumps = Group([sys.executable, "manage.py", "run_pumps"], env, log)
        worker = ("worker", "-Q", "default", "-c", str(processes), "--loglevel", "INFO")
        self.worker = Group([*CELERY, *worker, "--without-gossip", "--without-mingle"], env, log)
        schedule = ("--pidfile=", "-s", str(folder / "schedule"))
        self.beat = Group([*CELERY, "beat", "--loglevel", "INFO", *schedule], env, log)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self.start_redis()
        for group in (self.model, self.pumps, self.worker, self.beat):
            group.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for group in (self.pumps, self.worker, self.beat, self.model, self.redis):
            group.kill()
        self.redis_client.close()
        if error is not None:
            log.error(self.redis.log.read_text(errors="replace")[-20_000:])

    def start_redis(self, *, empty: bool = False) -> None:
        if empty:
            for path in self.folder.glob("appendonly*"):  # a folder, from Redis 7 on
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.redis.start()
        wait_until(self._redis_answers, within=150, what="Redis's start")

    def _redis_answers(self) -> bool:
        try:
            return bool(self.redis_client.ping())
        except redis.exceptions.ConnectionError:
            return False

    def let_end(self, more: float) -> None:
        """So many more answers may come to their end, then the others wait."""
        most = most_of(self.events)
        written = most.with_suffix(".new")
        written.write_text(str(self.seen().ended.total() + more))
        written.replace(most)  # never read half written

    def seen(self) -> Seen:
        found = Seen()
        if not self.events.exists():
            return found
        which = {BEGIN: found.begun, END: found.ended, CUT: found.cut}
        for line in self.events.read_text().splitlines():
            what, seed, now = line.split(" ")
            which[what][int(seed)] += 1
            found.most = max(found.most, int(now))
        return found
