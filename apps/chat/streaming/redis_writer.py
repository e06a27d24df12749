"""One clock and one way to Redis for all the answers that an event loop writes.

Redis gets the new events of all answers of a process in one round trip per tick.
"""

import asyncio
import contextvars
import json
import logging
from collections.abc import Iterator
from typing import Protocol
from weakref import WeakKeyDictionary

from redis.exceptions import RedisError

from apps.chat.streaming.events import StreamEvent
from apps.runtime.redis import async_redis

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
COMMAND_DELAY_SECONDS = 0.04
# One command of ours for all: redis-py packs and reads each command of a pipeline for 7 to 9 us of
# CPU, and there is one for each answer and tick. What is refused was written already, before the
# connection broke, or is refused as it would be in a pipeline: the others are run all the same.
RUN_COMMANDS = """
for _, command in ipairs(cjson.decode(ARGV[1])) do
    redis.pcall(unpack(command))
end
"""
# A process that died leaves its text here until somebody opens the answer again.
UNFINISHED_EXPIRES_SECONDS = 7 * 24 * 3600


class Log(Protocol):
    answer_id: int
    unwritten: list[StreamEvent]

    def flush(self) -> None: ...


class RedisWriter:
    """Collects the events and commands of one event loop and sends them in pipelines."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        self._to_flush: dict[Log, None] = {}
        self._to_write: dict[Log, None] = {}
        self._commands: list[tuple[str | int, ...]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    def flush_soon(self, log: Log, delay: float) -> None:
        """Flush a log at the next tick, together with the others."""
        self._to_flush[log] = None
        self._schedule_tick(delay)

    def write_soon(self, log: Log, delay: float) -> None:
        """Send a log's unwritten events to Redis at the next tick."""
        self._to_write[log] = None
        self._schedule_tick(delay)

    def add_command(self, *command: str | int) -> None:
        """Send a command to Redis after the events that are waiting now."""
        self._commands.append(command)
        self._schedule_tick(COMMAND_DELAY_SECONDS)

    async def drain(self) -> None:
        """Try to write everything that is waiting; return also when Redis is away."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        self._start_writing()
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _schedule_tick(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, self._tick)

    def _tick(self) -> None:
        self._timer = None
        logs, self._to_flush = self._to_flush, {}
        for log in logs:
            log.flush()
        self._start_writing()

    def _start_writing(self) -> None:
        if self._writing is None and (self._to_write or self._commands):
            # An empty context: a request may start this task, and the task outlives it.
            self._writing = self._loop.create_task(self._write(), context=contextvars.Context())

    async def _write(self) -> None:
        logs = {log: len(log.unwritten) for log in self._to_write}
        added = len(self._commands)
        self._to_write = {}
        commands = [command for log in logs for command in _commands(log)]
        commands += self._commands[:added]
        try:
            await async_redis().eval(RUN_COMMANDS, 0, json.dumps(commands))
        except RedisError as error:
            logger.warning("Answers cannot be written to Redis for now: %s", error)
            self._to_write = dict.fromkeys([*logs, *self._to_write])
            self._schedule_tick(RETRY_SECONDS)
        else:
            for log, count in logs.items():
                del log.unwritten[:count]
            del self._commands[:added]
        finally:
            self._writing = None
        if self._to_write or self._commands:  # a tick that came meanwhile did not write them
            self._schedule_tick(COMMAND_DELAY_SECONDS)


def _commands(log: Log) -> Iterator[tuple[str | int, ...]]:
    key = stream_key(log.answer_id)
    for event in log.unwritten:
        yield ("XADD", key, f"{event.id}-0", "e", event.event, "d", event.data)
        if event.event == "snapshot":
            yield ("XTRIM", key, "MINID", f"{event.id}-0")
        if event.id == 1 or event.event == "snapshot":
            yield ("EXPIRE", key, UNFINISHED_EXPIRES_SECONDS)


def stream_key(answer_id: int) -> str:
    """Return the Redis key of an answer's event stream."""
    return f"answer:{answer_id}:events"


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, RedisWriter] = WeakKeyDictionary()


def current() -> RedisWriter:
    """Return the writer of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = RedisWriter()
    return _by_loop[loop]
