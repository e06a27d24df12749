"""The supervisor with small shell children in place of the real ones."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from apps.embedded.errors import StartError
from apps.embedded.processes.process_log import ProcessLog
from apps.embedded.processes.readiness import Ready
from apps.embedded.processes.supervisor import Backoff, Child, Supervisor
from tests.waiting import until, wait_until

ROOT = Path(__file__).resolve().parents[3]
AT_ONCE = Backoff(first=0.05, longest=0.2)
FOREVER = "exec sleep 300"  # longer than any test


def shell(name: str, script: str, **options: Any) -> Child:
    return Child(name=name, argv=["/bin/sh", "-c", script], env=dict(os.environ), **options)


def exists(path: Path) -> Ready:
    async def ready() -> bool:
        return path.exists()

    return ready


class Running:
    """A supervisor at work, what it said and what it logged."""

    def __init__(self, folder: Path, *children: Child, backoff: Backoff = AT_ONCE) -> None:
        self.said: list[str] = []
        self.log = ProcessLog(folder / "processes.log")
        self.supervisor = Supervisor(
            children, folder=folder, log=self.log, say=self.said.append, backoff=backoff
        )

    async def until(self, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run until `act` has been through."""

        async def act_and_stop() -> None:
            try:
                async with asyncio.timeout(150):
                    await act()
            finally:
                self.supervisor.stop()

        try:
            await self.supervisor.run(act_and_stop)
        finally:
            self.log.close()

    def logged(self) -> list[str]:
        """Each line without its time."""
        lines = self.log.path.read_text(encoding="utf-8").splitlines()
        return [" ".join(line.split()[2:]) for line in lines]

    async def wait_for(self, line: str) -> None:
        await until(lambda: line in self.logged())


async def wait_forever() -> None:
    await asyncio.Event().wait()


async def wait_for_reports(running: Running, count: int) -> None:
    await until(lambda: len(running.said) >= count)


async def test_a_child_starts_when_those_before_it_are_ready(tmp_path: Path) -> None:
    may_go_on = tmp_path / "may-go-on"
    os.mkfifo(may_go_on)
    slow = f"echo begun; cat may-go-on; touch ready; {FOREVER}"
    first = shell("first", slow, ready=exists(tmp_path / "ready"))
    second = shell("second", f"test -e ready && echo in order; {FOREVER}", after=["first"])
    running = Running(tmp_path, second, first)

    async def let_it_go_on() -> None:
        await running.wait_for("first begun")
        await asyncio.to_thread(may_go_on.write_text, "")
        await running.wait_for("second in order")

    await running.until(let_it_go_on)

    logged = running.logged()
    assert logged.index("supervisor first is ready") < logged.index("second in order")


async def test_a_late_child_starts_when_the_start_is_through(tmp_path: Path) -> None:
    late = shell("late", f"test -e told && echo after it; {FOREVER}", late=True)
    early = shell("early", f"echo ready to see it; {FOREVER}")
    running = Running(tmp_path, early, late)

    async def tell() -> None:
        await running.wait_for("early ready to see it")
        (tmp_path / "told").touch()

    stopping = asyncio.create_task(running.wait_for("late after it"))
    stopping.add_done_callback(lambda _: running.supervisor.stop())
    await running.supervisor.run(tell)
    running.log.close()

    assert "late after it" in running.logged()


async def test_what_ends_is_started_again_and_said(tmp_path: Path) -> None:
    script = "echo run >> runs; test $(wc -l < runs) -lt 3 && exit 7; echo stays; exec sleep 300"
    running = Running(tmp_path, shell("child", script))

    await running.until(lambda: running.wait_for("child stays"))

    assert running.said == [
        "child ended unexpectedly (exit code 7); restarting in 0.05 s.",
        "child ended unexpectedly (exit code 7); restarting in 0.1 s.",
    ]


async def test_a_killed_child_takes_its_own_children_with_it(tmp_path: Path) -> None:
    script = "test -e pids || { sleep 300 & echo $$ $! > pids; wait; }; echo second; exec sleep 300"
    running = Running(tmp_path, shell("child", script))

    async def kill() -> None:
        await until((tmp_path / "pids").exists)
        await until((tmp_path / "pids").read_text)
        leader, grandchild = map(int, (tmp_path / "pids").read_text().split())
        os.kill(leader, signal.SIGKILL)
        await running.wait_for("child second")
        await until(lambda: not alive(grandchild))

    await running.until(kill)

    assert running.said == ["child ended unexpectedly (killed by SIGKILL); restarting in 0.05 s."]


async def test_a_needed_child_that_never_gets_ready_ends_the_start(tmp_path: Path) -> None:
    never = exists(tmp_path / "never")
    needed = shell("web", "echo no such module; exit 3", ready=never, needed=True)
    running = Running(tmp_path, needed, shell("other", FOREVER))

    with pytest.raises(StartError) as raised:
        await running.until(wait_forever)

    assert "web ended unexpectedly (exit code 3) before it was ready" in str(raised.value)
    assert 'Last log line: "no such module".' in str(raised.value)


async def test_a_missing_program_is_said(tmp_path: Path) -> None:
    missing = Child(name="redis", argv=["/nowhere/redis-server"], env={}, needed=True)
    running = Running(tmp_path, missing)

    with pytest.raises(StartError, match="redis could not be started"):
        await running.until(wait_forever)


async def test_a_child_that_never_gets_ready_says_why_each_time(tmp_path: Path) -> None:
    model = shell("chat-model", "echo out of memory; exit 1", ready=exists(tmp_path / "never"))
    running = Running(tmp_path, model)

    await running.until(lambda: wait_for_reports(running, 2))

    assert running.said[0].endswith('restarting in 0.05 s. Last log line: "out of memory".')


async def test_the_end_comes_in_order(tmp_path: Path) -> None:
    def child(name: str, seconds: float, *uses: str) -> Child:
        # The one that ends first is slow, so that a wrong order would show.
        ends = f"trap 'sleep {seconds}; exit 0' TERM; touch {name}; while :; do sleep 0.02; done"
        return shell(name, ends, uses=uses, ready=exists(tmp_path / name))

    running = Running(tmp_path, child("redis", 0), child("web", 0.3, "redis"))

    async def both_ready() -> None:
        await running.supervisor.wait_ready("redis")
        await running.supervisor.wait_ready("web")

    await running.until(both_ready)

    assert running.logged()[-2:] == ["supervisor web has ended", "supervisor redis has ended"]


async def test_who_does_not_listen_is_killed_when_the_grace_is_over(tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
    running = Running(tmp_path, shell("deaf", deaf, grace=0.3))

    began = time.monotonic()
    await running.until(lambda: running.wait_for("deaf deaf"))

    assert 0.3 <= time.monotonic() - began < 60


async def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
    running = Running(tmp_path, shell("deaf", deaf, grace=60))

    async def press_twice() -> None:
        await running.wait_for("deaf deaf")
        os.kill(os.getpid(), signal.SIGINT)
        await running.wait_for("supervisor stopping")
        os.kill(os.getpid(), signal.SIGINT)

    began = time.monotonic()
    await running.until(press_twice)

    assert time.monotonic() - began < 58


async def test_an_error_while_starting_ends_everything(tmp_path: Path) -> None:
    running = Running(tmp_path, shell("child", FOREVER))

    async def fail() -> None:
        raise StartError("No.")

    with pytest.raises(StartError, match=r"No\."):
        await running.until(fail)


def test_backoff_grows_to_its_limit() -> None:
    backoff = Backoff(first=1, longest=30)

    assert [backoff.after(n) for n in (1, 2, 3, 6, 500)] == [1, 2, 4, 30, 30]


async def test_a_child_that_ran_well_is_forgiven(tmp_path: Path) -> None:
    backoff = Backoff(first=0.05, longest=5, well_after=0.0)
    running = Running(tmp_path, shell("child", "exit 1"), backoff=backoff)

    await running.until(lambda: wait_for_reports(running, 3))

    assert all("restarting in 0.05 s." in line for line in running.said)


def test_nothing_survives_a_killed_supervisor(tmp_path: Path) -> None:
    """kill -9: no handler runs, so this is the watchdog's work."""
    program = textwrap.dedent(
        """
        import asyncio, os
        from pathlib import Path
        from apps.embedded.processes.process_log import ProcessLog
        from apps.embedded.processes.supervisor import Child, Supervisor

        folder = Path(os.environ["FOLDER"])
        script = "sleep 300 & echo $$ $! > pids.new; mv pids.new pids; trap '' TERM; wait"
        child = Child(name="child", argv=["/bin/sh", "-c", script], env=dict(os.environ))
        log = ProcessLog(folder / "log")

        async def main() -> None:
            supervisor = Supervisor([child], folder=folder, log=log, say=print)
            await supervisor.run(asyncio.Event().wait)

        asyncio.run(main())
        """
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )
    wait_until(lambda: (tmp_path / "pids").exists())
    wait_until(lambda: "child is ready" in (tmp_path / "log").read_text())
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(map(alive, pids))

    supervisor.kill()
    supervisor.wait()

    wait_until(lambda: not any(map(alive, pids)))


def alive(pid: int) -> bool:
    """A zombie that nobody has collected yet is dead."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
