"""Policies of a running job: refill, minimum yield, daily token limit.

The pump enforces them every second, behind the fence of its lease. Another pump, or the same one
after a crash, may repeat every step without harm.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.batch.handlers import RowOrigin
from apps.batch.models import ACTIVE, OPEN, Batch, BatchStatus, Item, ItemStatus
from apps.batch.store.items import add_items, next_index

BAD = (ItemStatus.REJECTED, ItemStatus.FAILED)
REFILL_ROWS = 2_000
# A goal of three rows may need more than five attempts per row.
MIN_ROWS = 20
# Of this many last rows at least the share `MIN_YIELD` must be accepted.
YIELD_ROWS = 100
ESTIMATED = " The server reports no usage: tokens are estimated from characters."
MIN_YIELD = 0.05


def enforce_policies(server_id: int) -> list[int]:
    """Check the active jobs of a server that have a goal or a daily limit.

    Returns the batches that got new rows.
    """
    batches = Batch.objects.filter(server_id=server_id, status__in=ACTIVE).filter(
        Q(goal__isnull=False) | Q(daily_tokens__isnull=False)
    )
    batches = batches.defer("spec")  # too large to read every second
    refilled = []
    for batch in batches:
        if batch.goal is not None and _refill(batch):
            refilled.append(batch.pk)
        if batch.daily_tokens is not None:
            _enforce_daily_limit(batch)
    return refilled


def _refill(batch: Batch) -> int:
    """Create a row for each rejected or failed one, or fail the job with the reason.

    A replacement has the original index of the row that it replaces, so each row asked for has one
    chain of attempts, and quotas come out exactly. Returns the number of new rows.
    """
    bad = list(
        Item.objects.filter(batch=batch, status__in=BAD, replaced=False).order_by("index")[
            :REFILL_ROWS
        ]
    )
    if not bad:
        return 0
    if sentence := _low_yield_reason(batch):
        _fail(batch, sentence)
        return 0
    allowed = batch.rows_before_resume + max(batch.tries * batch.wanted, MIN_ROWS)
    room = max(0, allowed - batch.total)
    if not room:
        if not Item.objects.filter(batch=batch, status__in=OPEN).exists():
            _fail(batch, f"The limit of {batch.total:,} attempts was reached.")
        return 0
    return create_replacements(batch, bad[:room])


@transaction.atomic
def create_replacements(batch: Batch, chosen: Sequence[Item]) -> int:
    """Create a replacement for each chosen row that is still bad. Returns their number."""
    # Someone who adds rows now uses the same indexes. The refill can wait for the next second.
    if not Batch.objects.select_for_update(skip_locked=True).filter(pk=batch.pk).exists():
        return 0
    # Someone may have accepted one of them since they were read.
    keys = [item.pk for item in chosen]
    bad = Item.objects.filter(pk__in=keys, status__in=BAD, replaced=False)
    still = set(bad.values_list("pk", flat=True))
    chosen = [item for item in chosen if item.pk in still]
    if not chosen:
        return 0
    first = next_index(batch)
    inputs = (RowOrigin(item.original_index).to_json() for item in chosen)
    add_items(batch, inputs, first=first)
    Item.objects.filter(pk__in=[item.pk for item in chosen]).update(replaced=True)
    Batch.objects.filter(pk=batch.pk).update(total=first + len(chosen))
    return len(chosen)


def _low_yield_reason(batch: Batch) -> str:
    """Return why the yield of the last rows is too low; "" if it is not."""
    finished = Item.objects.filter(batch=batch, finished__isnull=False)
    if batch.yield_counted_since is not None:
        finished = finished.filter(finished__gt=batch.yield_counted_since)
    last = list(finished.order_by("-finished").values_list("status", flat=True)[:YIELD_ROWS])
    accepted = last.count(ItemStatus.ACCEPTED)
    if len(last) < YIELD_ROWS or accepted >= MIN_YIELD * YIELD_ROWS:
        return ""
    return f"Only {accepted} of the last {YIELD_ROWS} rows were accepted."


def _fail(batch: Batch, why: str) -> None:
    accepted = Item.objects.filter(batch=batch, status=ItemStatus.ACCEPTED).count()
    reason = (
        f"Stopped with {accepted:,} of {batch.goal:,} rows: {why} Check the reasons, change the "
        "recipe or its checks, or resume the job."
    )
    Batch.objects.filter(pk=batch.pk, status__in=ACTIVE).update(
        status=BatchStatus.FAILED, reason=reason, finished=timezone.now()
    )


def _enforce_daily_limit(batch: Batch) -> None:
    """Pause a job that has used its tokens of today."""
    today = timezone.localdate()
    if batch.day != today:
        batch.day, batch.tokens_before_day = today, batch.spent_tokens
        batch.save(update_fields=["day", "tokens_before_day"])
    if batch.daily_tokens is not None and batch.spent_today >= batch.daily_tokens:
        estimated = "" if not batch.estimated_tokens else ESTIMATED
        Batch.objects.filter(pk=batch.pk, status__in=ACTIVE).update(
            status=BatchStatus.PAUSED,
            reason=f"The daily limit of {batch.daily_tokens:,} tokens is reached. The job "
            "continues tomorrow."
            f"{estimated}",
            resumes_on=today + timedelta(days=1),
        )


def resume_after_daily_limit() -> int:
    """Requeue jobs that reached their limit on an earlier day. Returns their number."""
    return Batch.objects.filter(
        status=BatchStatus.PAUSED, resumes_on__lte=timezone.localdate()
    ).update(status=BatchStatus.QUEUED, reason="", resumes_on=None, day=None)
