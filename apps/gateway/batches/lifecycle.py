"""Batches of a person: created, found, cancelled, and brought to their end."""

import re
from contextlib import suppress
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from apps.batch.errors import WrongState
from apps.batch.models import BatchStatus
from apps.batch.services import cancel_batch, delete_batch
from apps.core import quotas
from apps.core.models import ApiKey, OwnedQuerySet
from apps.gateway.batches.input_file import ENDPOINTS
from apps.gateway.errors import GatewayError
from apps.gateway.files.public_ids import read_public_id
from apps.gateway.files.store import LIFETIME
from apps.gateway.models import BATCH_PREFIX, FileBatch, ProgramFile
from apps.work import services as work

CHECK, FINISH = "gateway.batch.check", "gateway.batch.finish"
ENDED = (BatchStatus.DONE, BatchStatus.CANCELLED, BatchStatus.FAILED)
OVER_AT_ONCE = 1000
LONGEST_HOURS = 30 * 24
_WINDOW = re.compile(r"([1-9]\d{0,3})([hd])")
_Status = FileBatch.Status


def batches_of(owner: User) -> OwnedQuerySet[FileBatch]:
    """Query the batches of a person, with what their objects in the API show."""
    mine: OwnedQuerySet[FileBatch] = FileBatch.objects.owned_by(owner)
    return mine.select_related("job", "output_file", "error_file")


def find_batch(owner: User, public_id: str) -> FileBatch | None:
    """Return a batch of a person by its name in the API; None where they have no such batch."""
    key = read_public_id(public_id, BATCH_PREFIX)
    return None if key is None else batches_of(owner).filter(key=key).first()


def start_batch(
    key: ApiKey, file: ProgramFile, *, endpoint: str, window: str, metadata: dict[str, str]
) -> FileBatch:
    """Create a batch. A worker checks its file.

    Raises:
        GatewayError: no such endpoint, or no such window.
        LimitReached: too many batches of the person are not done.
    """
    if endpoint not in ENDPOINTS:
        detail = f"No batch runs at “{endpoint[:100]}”. Endpoints: {', '.join(ENDPOINTS)}."
        raise GatewayError(400, "invalid_endpoint", detail)
    expires = timezone.now() + _duration(window)
    with quotas.counting(key.user):
        active = batches_of(key.user).filter(status__in=(_Status.VALIDATING, _Status.IN_PROGRESS))
        quotas.check("batches", active.count())
        batch = FileBatch.objects.create(
            owner=key.user,
            api_key=key,
            endpoint=endpoint,
            window=window,
            expires=expires,
            input_file=file,
            input_key=file.key,
            metadata=metadata,
        )
        work.enqueue(CHECK, batch.pk, owner=key.user)
    return batch


def _duration(window: str) -> timedelta:
    match = _WINDOW.fullmatch(window)
    hours = int(match[1]) * (24 if match[2] == "d" else 1) if match else 0
    if not 1 <= hours <= LONGEST_HOURS:
        detail = f"`completion_window` is a time like “24h” or “7d”, up to {LONGEST_HOURS} hours."
        raise GatewayError(400, "invalid_completion_window", detail)
    return timedelta(hours=hours)


def cancel(batch: FileBatch) -> None:
    """Stop a batch. Requests that are done stay in its results.

    Raises:
        GatewayError: it has ended.
    """
    now = timezone.now()
    mine = FileBatch.objects.filter(pk=batch.pk)
    cancelled = {"status": _Status.CANCELLED, "cancelled": now, "ended": now}
    if mine.filter(status=_Status.VALIDATING).update(**cancelled):
        work.discard(CHECK, [batch.pk])
        for early in mine.exclude(job=None).select_related("job"):
            assert early.job is not None
            cancel_batch(early.job)  # it has some of its rows
        return
    if not mine.filter(status=_Status.IN_PROGRESS).update(cancelled=now):
        batch.refresh_from_db()
        detail = f"The batch is {batch.status}. Only one in progress can be cancelled."
        raise GatewayError(409, "batch_ended", detail)
    batch.refresh_from_db()
    if batch.job is not None:
        with suppress(WrongState):  # its job ended a moment ago
            cancel_batch(batch.job)
    work.enqueue(FINISH, batch.pk, owner=batch.owner)


def finish_batches() -> None:
    """Queue the writing of results for batches whose job has ended or whose time is over."""
    is_over = Q(job__status__in=ENDED) | Q(expires__lte=timezone.now()) | Q(job=None)
    found = FileBatch.objects.filter(is_over, status=_Status.IN_PROGRESS).order_by("pk")
    for batch in found.select_related("owner")[:OVER_AT_ONCE]:
        work.enqueue(FINISH, batch.pk, owner=batch.owner)


def delete_old_jobs() -> None:
    """Delete the rows of batches whose results are deleted too. The batches stay."""
    old = FileBatch.objects.filter(ended__lt=timezone.now() - LIFETIME).exclude(job=None)
    for batch in old.select_related("job")[:OVER_AT_ONCE]:
        assert batch.job is not None
        delete_batch(batch.job)
