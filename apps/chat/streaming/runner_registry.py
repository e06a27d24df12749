"""The Redis keys in which processes say which answers they write.

A runner renews a heartbeat, and each answer names its runner. So any process can send a command to
the runner of an answer, and can tell when that runner has died: at once on the same machine,
elsewhere when the heartbeat expires.
"""

import asyncio
from datetime import datetime, timedelta

from django.utils import timezone

from apps.chat.streaming import redis_writer
from apps.chat.streaming.redis_writer import UNFINISHED_EXPIRES_SECONDS
from apps.runtime import process_identity
from apps.runtime.redis import async_redis, sync_redis

HEARTBEAT_SECONDS = 15
# An answer that no runner has registered within this time is an orphan.
START_WITHIN = timedelta(seconds=15)
SEND_ATTEMPTS = 5

_written_here: set[int] = set()
"""Answers that this process writes: for these nobody has to ask Redis."""


def register(answer_id: int, runner: str, *, with_heartbeat: bool) -> None:
    """Write that a runner writes an answer, with the next pipeline. See START_WITHIN."""
    _written_here.add(answer_id)
    writer = redis_writer.current()
    if with_heartbeat:
        name = process_identity.current_process_id()
        writer.add_command("SET", _heartbeat_key(runner), name, "EX", HEARTBEAT_SECONDS)
    writer.add_command("SET", _runner_key(answer_id), runner, "EX", UNFINISHED_EXPIRES_SECONDS)


def unregister(answer_id: int) -> None:
    """Write that an answer has ended, with the next pipeline."""
    forget(answer_id)
    redis_writer.current().add_command("DEL", _runner_key(answer_id))


def forget(answer_id: int) -> None:
    """Ask Redis again for a runner of this answer: here it has none any more."""
    _written_here.discard(answer_id)


async def send_heartbeat(runner: str) -> None:
    name = process_identity.current_process_id()
    await async_redis().set(_heartbeat_key(runner), name, ex=HEARTBEAT_SECONDS)


async def send_command(answer_id: int, command: str) -> bool:
    """Queue a command for the runner of an answer; return False if it has none."""
    redis = async_redis()
    for _ in range(SEND_ATTEMPTS):
        runner = await redis.get(_runner_key(answer_id))
        if isinstance(runner, bytes):
            key = _commands_key(runner.decode())
            await redis.rpush(key, command)
            await redis.expire(key, HEARTBEAT_SECONDS)
            return True
        # It may have started this moment: a process registers with its next pipeline.
        await asyncio.sleep(redis_writer.COMMAND_DELAY_SECONDS)
    return False


async def next_command(runner: str, seconds: float) -> str | None:
    """Return the next command for a runner; None after `seconds` without one."""
    item = await async_redis().blpop([_commands_key(runner)], timeout=seconds)
    if item is None:
        return None
    assert isinstance(item[1], bytes)
    return item[1].decode()


def is_running(answer_id: int, created: datetime) -> bool:
    """Return whether some process still writes an answer. Synchronous."""
    if answer_id in _written_here:
        return True
    redis = sync_redis()
    runner = redis.get(_runner_key(answer_id))
    if runner is None:
        return timezone.now() - created < START_WITHIN
    assert isinstance(runner, bytes)
    process = redis.get(_heartbeat_key(runner.decode()))
    return isinstance(process, bytes) and not process_identity.has_exited(process.decode())


def _runner_key(answer_id: int) -> str:
    return f"answer:{answer_id}:runner"


def _heartbeat_key(runner: str) -> str:
    return f"runner:{runner}:alive"


def _commands_key(runner: str) -> str:
    return f"runner:{runner}:orders"
