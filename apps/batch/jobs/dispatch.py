"""Servers that need a pump, and the message that wakes one.

A lost or repeated message changes nothing: pumps also look for work on their own. A job is no
durable task: its rows are in the table, and its pump holds a fenced lease (`store/leases.py`).
"""

import logging
from datetime import UTC, datetime

from django.db import transaction
from redis.exceptions import RedisError

from apps.batch import pump_heartbeat
from apps.batch.jobs.job_policies import resume_after_daily_limit
from apps.batch.jobs.job_servers import hand_over_jobs
from apps.batch.models import (
    ACTIVE,
    Batch,
    BatchServer,
    BatchStatus,
    Item,
    ItemStatus,
    PumpLease,
)
from apps.batch.store import claims, leases

log = logging.getLogger(__name__)


def wake_pump(server_id: int | None) -> None:
    """Wake a server's pump after the transaction; without Redis it starts a little later."""
    if server_id is not None:
        transaction.on_commit(lambda: _publish(server_id))


def _publish(server_id: int) -> None:
    try:
        pump_heartbeat.publish_work(server_id)
    except (RedisError, OSError) as error:
        log.warning("No message could be sent, the job starts a little later: %s", error)


def servers_to_wake() -> list[int]:
    """Return the servers with work and without a pump, the longest idle first."""
    hand_over_jobs()
    claims.release_rows_of_removed_servers()
    _fail_jobs_without_server()
    resume_after_daily_limit()
    live = leases.held_servers()
    found = set(Batch.objects.filter(status__in=ACTIVE).values_list("server", flat=True))
    shared = BatchServer.objects.filter(batch__status__in=ACTIVE)
    found.update(shared.values_list("server", flat=True))
    claimed = Item.objects.filter(server__isnull=False, finished=None)
    running = claimed.filter(status=ItemStatus.RUNNING)
    found.update(running.values_list("server", flat=True).distinct())
    beats = dict(PumpLease.objects.values_list("server_id", "heartbeat"))
    never = datetime.min.replace(tzinfo=UTC)
    idle = found - {None} - live
    return sorted(idle, key=lambda server_id: (beats.get(server_id, never), server_id))


def _fail_jobs_without_server() -> None:
    Batch.objects.filter(server=None, status__in=ACTIVE).update(
        status=BatchStatus.FAILED,
        reason="The model server of this job was removed. Start a new job with another one.",
    )
