"""A process that a test slows down runs again after it, whenever that is over."""

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from tests import slow_process
from tests.slow_process import slowed
from tests.waiting import wait_until


@pytest.fixture
def waiting() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


def is_stopped(pid: int) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


@pytest.mark.parametrize("group", [False, True])
def test_nothing_stays_stopped(waiting: subprocess.Popen[bytes], group: bool) -> None:
    for _ in range(20):
        with slowed(waiting.pid, group=group):
            pass
        assert not is_stopped(waiting.pid)


def test_a_process_that_is_killed_while_it_is_slowed(waiting: subprocess.Popen[bytes]) -> None:
    with slowed(waiting.pid):
        waiting.kill()
        assert waiting.wait() < 0


def test_it_goes_on_when_nobody_reads_what_it_writes(waiting: subprocess.Popen[bytes]) -> None:
    command = [sys.executable, "-S", slow_process.__file__, str(waiting.pid), "process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slower:
        assert slower.stdin
        assert slower.stdout
        slower.stdout.read(1)
        slower.stdout.close()
        for _ in range(2):
            wait_until(lambda: not is_stopped(waiting.pid), what="its turn")
            wait_until(lambda: is_stopped(waiting.pid), what="its rest")
        slower.stdin.close()
    assert slower.returncode == 0
    assert not is_stopped(waiting.pid)
