"""Servers that need a pump, and the message that wakes one.

A lost or repeated message changes nothing: pumps also look for work on their own.
"""

import logging
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from redis.exceptions import RedisError

from apps.batch import pump_heartbeat
from apps.batch.jobs.job_policies import resume_after_daily_limit
from apps.batch.models import ACTIVE, Batch, BatchStatus, Item, ItemStatus, PumpLease
from apps.batch.store import leases

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
    _fail_jobs_without_server()
    resume_after_daily_limit()
    live = leases.held_servers()
    orphaned = Item.objects.filter(batch=OuterRef("pk"), status=ItemStatus.RUNNING)
    waiting = Batch.objects.filter(server__isnull=False).exclude(server__in=live)
    waiting = waiting.filter(Q(status__in=ACTIVE) | Exists(orphaned))
    beats = dict(PumpLease.objects.values_list("server_id", "heartbeat"))
    never = datetime.min.replace(tzinfo=UTC)
    found = set(waiting.values_list("server_id", flat=True))
    return sorted(found, key=lambda server_id: (beats.get(server_id, never), server_id))


def _fail_jobs_without_server() -> None:
    Batch.objects.filter(server=None, status__in=ACTIVE).update(
        status=BatchStatus.FAILED,
        reason="The model server of this job was removed. Start a new job with another one.",
    )
    # No pump is left to return rows that were in flight.
    Item.objects.filter(batch__server=None, status=ItemStatus.RUNNING).update(
        status=ItemStatus.PENDING, reason="The model server was removed."
    )
