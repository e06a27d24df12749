"""Celery's part: waking pumps. A message lost or delivered twice changes nothing."""

import asyncio
import logging
import mmap
import os
import signal
from functools import partial
from types import FrameType
from typing import Any

from celery import shared_task
from celery.signals import worker_ready
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.batch import pump, services
from apps.core.redis import close_async_redis
from apps.llm.client import close_clients

log = logging.getLogger(__name__)

# A message that found no worker in time is not missed: beat looks every few seconds.
MESSAGE_SECONDS = 60

# One byte that the worker and the pool processes forked from it share. Only the worker hears that
# it shall end, and would wait for the slice of a pump that knows nothing of it.
_ending = mmap.mmap(-1, 1)


@worker_ready.connect
def _hear_the_end(**_: Any) -> None:
    """Celery's own signal for this comes after it has waited for the tasks, which is too late."""
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
        signal.signal(number, partial(_note_and_pass_on, signal.getsignal(number)))


@worker_ready.connect
def _wake_at_once(**_: Any) -> None:
    """A worker that was killed and is there again goes on with what it was at."""
    wake_pumps.delay()


def _note_and_pass_on(handler: Any, number: int, frame: FrameType | None) -> None:
    _ending[0] = 1
    if callable(handler):
        handler(number, frame)


@shared_task(name="apps.batch.tasks.run_pump", expires=MESSAGE_SECONDS)
def run_pump(server_id: int) -> None:
    """Works on a server's rows for one slice, and goes to the end of the queue for the next."""
    parent = os.getppid()
    # An orphan (the worker was killed, its child not) ends too: nobody would stop it otherwise.
    more = asyncio.run(_pump(server_id, lambda: bool(_ending[0]) or os.getppid() != parent))
    if more and not _ending[0]:
        run_pump.delay(server_id)


async def _pump(server_id: int, should_stop: pump.Stop) -> bool:
    try:
        return await pump.run(server_id, should_stop=should_stop)
    finally:
        await close_clients()
        await close_async_redis()


@shared_task(name="apps.batch.tasks.wake_pumps", expires=MESSAGE_SECONDS)
def wake_pumps() -> None:
    """Beat's: whatever became of a message or a worker, rows do not wait for ever."""
    for server_id in services.servers_to_wake():
        run_pump.delay(server_id)


def wake(server_id: int | None) -> None:
    """Sends a pump to work after the current transaction. Without a broker beat does it later."""
    if server_id is not None:
        transaction.on_commit(lambda: _send(server_id))


def _send(server_id: int) -> None:
    try:
        run_pump.delay(server_id)
    except OperationalError as error:
        log.warning("No message could be sent, the job starts a little later: %s", error)
