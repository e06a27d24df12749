"""kill -9 of a web process, of a worker, of Redis: permits are right again within ten seconds.

Where the machine has nothing else to do: WORKBENCH_AGAIN_WITHIN=10 asks for that.

Real processes, a Redis of the test's own, and a gauge that counts what a model server would see.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

from apps.embedded.processes.redis_server import find_binary
from apps.llm.permits.keys import permit_key
from tests.faults.gauge import SERVER, SLOTS, Gauge
from tests.waiting import wait_until

AGAIN_WITHIN = float(os.environ.get("WORKBENCH_AGAIN_WITHIN", "60"))  # seconds
FOR_EVER = 600.0  # seconds a request takes
SHORT = 0.05


class Redis:
    """Without persistence: what starts again is empty."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self.client = redis.Redis(unix_socket_path=str(self.socket))
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}?db=0"

    def start(self) -> None:
        listen = ["--port", "0", "--unixsocket", str(self.socket)]
        quietly = ["--save", "", "--loglevel", "warning"]
        self.process = subprocess.Popen(
            [find_binary(), *listen, *quietly],
            cwd=self.socket.parent,
            stdout=subprocess.DEVNULL,
        )
        wait_until(self.answers, within=150)

    def answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.exceptions.ConnectionError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def permits(self) -> int:
        return int(self.client.hlen(permit_key(SERVER)))


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    server.start()
    yield server
    server.kill()
    server.client.close()


@pytest.fixture
def gauge() -> Iterator[Gauge]:
    with Gauge() as found:
        yield found


StartHolder = Callable[[str, int, float], "subprocess.Popen[bytes]"]


@pytest.fixture
def start_holder(own_redis: Redis, gauge: Gauge) -> Iterator[StartHolder]:
    """Starts a process whose tasks each hold a permit for so many seconds, again and again."""
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "workbench.settings",
        "REDIS_URL": own_redis.url,
        "WORKBENCH_IDLE_AFTER_CHAT": "1",
    }
    with ExitStack() as ended:

        def start(lane: str, tasks: int, seconds: float) -> "subprocess.Popen[bytes]":
            command = [sys.executable, "-m", "tests.faults.holder", str(gauge.port)]
            return ended.enter_context(
                killed_at_the_end(
                    subprocess.Popen([*command, lane, str(tasks), str(seconds)], env=env)
                )
            )

        yield start


@contextmanager
def killed_at_the_end(
    process: "subprocess.Popen[bytes]",
) -> Iterator["subprocess.Popen[bytes]"]:
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_killed_worker_and_a_killed_web_process(
    start_holder: StartHolder, gauge: Gauge, own_redis: Redis
) -> None:
    """Two of the four slots were a dead worker's, one was a question's: all come back."""
    worker = start_holder("batch", 2, FOR_EVER)
    wait_until(lambda: gauge.now == 2, within=150)
    web = start_holder("interactive", 1, FOR_EVER)
    wait_until(lambda: gauge.now == 3, within=150)
    start_holder("batch", SLOTS, FOR_EVER)
    # One slot is busy with a question, which leaves rows three.
    wait_until(lambda: gauge.now == SLOTS, within=150)
    worker.kill()
    web.kill()
    wait_until(lambda: gauge.ended == 3, within=150)
    wait_until(lambda: gauge.now == SLOTS, within=AGAIN_WITHIN)
    assert gauge.most == SLOTS
    assert own_redis.permits() == SLOTS


def test_redis_is_killed_and_starts_again_empty(
    start_holder: StartHolder, gauge: Gauge, own_redis: Redis
) -> None:
    """What was in flight is registered again before anybody else is let in."""
    start_holder("batch", 2, FOR_EVER)
    wait_until(lambda: gauge.now == 2, within=150)
    start_holder("batch", SLOTS, SHORT)  # its rows end all the time, also without a Redis
    wait_until(lambda: gauge.now == SLOTS, within=150)
    own_redis.kill()
    wait_until(lambda: gauge.now == 2, within=150)
    own_redis.start()
    wait_until(lambda: gauge.now == SLOTS, within=AGAIN_WITHIN)
    wait_until(lambda: own_redis.permits() == SLOTS, within=AGAIN_WITHIN)
    ended = gauge.ended
    # Were the first two forgotten, there would be six now.
    wait_until(lambda: gauge.ended >= ended + 2 * SLOTS, within=150)
    assert gauge.most == SLOTS
