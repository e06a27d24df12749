"""Starts the children in order, restarts those that end, and stops them all at the end.

Why no library: honcho 2.0 stops everything when one process ends and has no readiness gates;
supervisor 4 and circus are daemons with a configuration file and a control channel of their own,
and have no readiness gates either.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.embedded.errors import StartError
from apps.embedded.processes.process_log import ProcessLog, lines, output_pipe
from apps.embedded.processes.readiness import Ready
from apps.embedded.processes.watchdog import Watchdog

POLL_SECONDS = 0.05
LAST_LINES_SECONDS = 1.0
LAST_LINE_CHARACTERS = 300
PATIENCE_SECONDS = 3.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SUPERVISOR = "supervisor"


@dataclass(frozen=True, kw_only=True)
class Child:
    """A process to keep running."""

    name: str
    argv: Sequence[str | Path]
    env: Mapping[str, str]
    ready: Ready | None = None
    """None: ready as soon as it runs."""
    after: Sequence[str] = ()
    """Starts when these are ready."""
    late: bool = False
    """Starts after everything that a person waits for."""
    uses: Sequence[str] = ()
    """Names of children that are stopped only after this one."""
    needed: bool = False
    """If it ends before it was ready, Workbench does not start."""
    grace: float = 10.0
    """Seconds between SIGTERM and SIGKILL."""


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """The pause before a restart, in seconds."""

    first: float = 1.0
    longest: float = 30.0
    well_after: float = 60.0
    """After this time a run counts as good, and the next pause is the first again."""

    def after(self, failures: int) -> float:
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 16))


@dataclass
class _State:
    child: Child
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is ready for the first time, and never cleared."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the supervisor has stopped it for good."""
    process: asyncio.subprocess.Process | None = None
    reading: "asyncio.Task[None] | None" = None
    last_line: str = ""


class Supervisor:
    def __init__(
        self,
        children: Sequence[Child],
        *,
        folder: Path,
        log: ProcessLog,
        say: Callable[[str], None],
        backoff: Backoff | None = None,
    ) -> None:
        """`folder` is the working directory of the children."""
        self._states = {child.name: _State(child) for child in children}
        self._folder = folder
        self._log = log
        self._say = say
        self._backoff = backoff or Backoff()
        self._watchdog = Watchdog()
        self._started = asyncio.Event()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._error: BaseException | None = None

    async def run(self, while_starting: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Keep the children running until a signal, then stop them.

        `while_starting` runs while the first children start; the late ones start after it.

        Raises:
            StartError: a needed child could not start.
        """
        self._listen_to_signals()
        tasks = [asyncio.create_task(self._keep_running(state)) for state in self._states.values()]
        tasks.append(asyncio.create_task(self._start(while_starting)))
        for task in tasks:
            task.add_done_callback(self._stop_on_error)
        try:
            await self._stop.wait()
        finally:
            await self._end_all(tasks)
        if self._error is not None:
            raise self._error

    async def wait_ready(self, name: str) -> None:
        await self._states[name].ready.wait()

    def stop(self) -> None:
        """Stop all children; a second call skips the grace."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    def _listen_to_signals(self) -> None:
        for number in STOP_SIGNALS:
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # started with nohup
            asyncio.get_running_loop().add_signal_handler(number, self.stop)

    def _stop_on_error(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self._stop.set()

    async def _start(self, while_starting: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await while_starting()
        self._started.set()

    # --- One child ----------------------------------------------------------------------------

    async def _keep_running(self, state: _State) -> None:
        """Run one child, and restart it whenever it ends."""
        for name in state.child.after:
            await self.wait_ready(name)
        if state.child.late:
            await self._started.wait()
        failures = 0
        while not self._stop.is_set():
            started = time.monotonic()
            ending = await self._run_once(state)
            if self._stop.is_set():
                return
            if state.child.needed and not state.ready.is_set():
                raise StartError(self._start_error(state, ending))
            if time.monotonic() - started >= self._backoff.well_after:
                failures = 0
            failures += 1
            pause = self._backoff.after(failures)
            self._report(
                f"{state.child.name} {ending}; restarting in {pause:g} s.{_last_line(state)}"
            )
            await asyncio.sleep(pause)

    async def _run_once(self, state: _State) -> str:
        """Start the child, wait for its end and return how it ended."""
        async with output_pipe() as (write_end, reader):
            try:
                process = await self._spawn(state.child, write_end)
            except OSError as error:
                return f"could not be started ({error.strerror})"
            finally:
                os.close(write_end)
            state.process = process
            self._watchdog.watch(self._groups())
            state.reading = asyncio.create_task(self._read(state, reader))
            return await self._until_end(state, process, state.reading)

    async def _spawn(self, child: Child, output: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *child.argv,
            env=child.env,
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Its own group: Ctrl-C in the terminal reaches the supervisor alone.
            start_new_session=True,
        )

    async def _until_end(
        self,
        state: _State,
        process: asyncio.subprocess.Process,
        reading: "asyncio.Task[None]",
    ) -> str:
        polling = asyncio.create_task(self._poll_until_ready(state))
        try:
            code = await process.wait()
        finally:
            polling.cancel()
            _signal_group(process, signal.SIGKILL)  # a grandchild would keep the port
            await process.wait()
            await asyncio.wait({reading}, timeout=LAST_LINES_SECONDS)
            reading.cancel()
            state.process = None
            self._watchdog.watch(self._groups())
        return f"ended unexpectedly ({_reason(code)})"

    async def _read(self, state: _State, output: asyncio.StreamReader) -> None:
        async for line in lines(output):
            state.last_line = line.strip() or state.last_line
            self._log.write(state.child.name, line)

    async def _poll_until_ready(self, state: _State) -> None:
        if state.child.ready is not None:
            while not await state.child.ready():  # noqa: ASYNC110 - another process, no event
                await asyncio.sleep(POLL_SECONDS)
        state.ready.set()
        self._log.write(SUPERVISOR, f"{state.child.name} is ready")

    def _start_error(self, state: _State, ending: str) -> str:
        what = f"{state.child.name} {ending} before it was ready."
        return f"{what}{_last_line(state)} More in {self._log.path}."

    # --- The end ------------------------------------------------------------------------------

    async def _end_all(self, tasks: "Sequence[asyncio.Task[None]]") -> None:
        self._log.write(SUPERVISOR, "stopping")
        impatient = asyncio.get_running_loop().call_later(
            PATIENCE_SECONDS, self._say, "Stopping… Press Ctrl-C again to stop immediately."
        )
        await asyncio.gather(*(self._end(state) for state in self._states.values()))
        impatient.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watchdog.close()

    async def _end(self, state: _State) -> None:
        for other in self._states.values():
            if state.child.name in other.child.uses:
                await other.ended.wait()
        process = state.process
        if process is not None:
            _signal_group_leader(process, signal.SIGTERM)
            await self._wait_for_end(process, state.child.grace)
            _signal_group(process, signal.SIGKILL)
            await process.wait()
        if state.reading is not None:
            await asyncio.wait({state.reading}, timeout=LAST_LINES_SECONDS)
        self._log.write(SUPERVISOR, f"{state.child.name} has ended")
        state.ended.set()

    async def _wait_for_end(self, process: asyncio.subprocess.Process, grace: float) -> None:
        """Wait until the process ends, its grace is over, or a second Ctrl-C."""
        end = asyncio.create_task(process.wait())
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({end, hurry}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        end.cancel()
        hurry.cancel()

    def _groups(self) -> list[int]:
        return [s.process.pid for s in self._states.values() if s.process is not None]

    def _report(self, line: str) -> None:
        self._log.write(SUPERVISOR, line)
        self._say(line)


def _signal_group_leader(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Signal the leader alone: Celery's main process, for example, stops its own pool."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _last_line(state: _State) -> str:
    """Return the last log line as a sentence if the child was never ready, else ""."""
    if state.ready.is_set() or not state.last_line:
        return ""
    return f' Last log line: "{state.last_line[:LAST_LINE_CHARACTERS]}".'


def _reason(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
