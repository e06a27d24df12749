"""What is decided for a whole job while it runs: refill, yield, budget.

The pump calls `tend` every second, behind its lease's fence. Every step is one a second pump, or
the same one after a crash, may repeat without harm.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.batch.models import ACTIVE, OPEN, Batch, BatchStatus, Item, ItemStatus
from apps.batch.store.items import add_items, next_index

BAD = (ItemStatus.REJECTED, ItemStatus.FAILED)
REFILL_ROWS = 2_000
# A goal of three rows may take more than three times as many tries.
FEWEST_TRIES = 20
# So many of the last rows are looked at, and at least that share of them must be accepted.
YIELD_ROWS = 100
ESTIMATED = " The server reports no usage: tokens are estimated from characters."
LEAST_YIELD = 0.05


def tend(server_id: int) -> list[int]:
    """One short look at the jobs of a server that have a goal or a budget.

    Returns those that were given new rows.
    """
    batches = Batch.objects.filter(server_id=server_id, status__in=ACTIVE).filter(
        Q(goal__isnull=False) | Q(daily_tokens__isnull=False)
    )
    batches = batches.defer("spec")  # as large as its values: nothing to read every second
    refilled = []
    for batch in batches:
        if batch.goal is not None and _refill(batch):
            refilled.append(batch.pk)
        if batch.daily_tokens is not None:
            _hold_to_budget(batch)
    return refilled


def _refill(batch: Batch) -> int:
    """Makes a new row for each that was rejected or failed, or says why it goes on no longer.

    Returns how many it made.

    A replacement stands for the same first row as what it replaces, so each row asked for has one
    chain of tries, and quotas come out exactly.
    """
    bad = list(
        Item.objects.filter(batch=batch, status__in=BAD, replaced=False).order_by("index")[
            :REFILL_ROWS
        ]
    )
    if not bad:
        return 0
    if sentence := _low_yield(batch):
        _stop(batch, sentence)
        return 0
    allowed = batch.rows_before_resume + max(batch.tries * batch.wanted, FEWEST_TRIES)
    room = max(0, allowed - batch.total)
    if not room:
        if not Item.objects.filter(batch=batch, status__in=OPEN).exists():
            _stop(batch, f"The limit of {batch.total:,} attempts was reached.")
        return 0
    return _replace(batch, bad[:room])


@transaction.atomic
def _replace(batch: Batch, chosen: Sequence[Item]) -> int:
    # Who adds rows right now takes the same indexes: the refill has time until the next second.
    if not Batch.objects.select_for_update(skip_locked=True).filter(pk=batch.pk).exists():
        return 0
    # A person may have accepted one of them since they were read.
    keys = [item.pk for item in chosen]
    bad = Item.objects.filter(pk__in=keys, status__in=BAD, replaced=False)
    still = set(bad.values_list("pk", flat=True))
    chosen = [item for item in chosen if item.pk in still]
    if not chosen:
        return 0
    first = next_index(batch)
    add_items(batch, ({"for": item.original_index} for item in chosen), first=first)
    Item.objects.filter(pk__in=[item.pk for item in chosen]).update(replaced=True)
    Batch.objects.filter(pk=batch.pk).update(total=first + len(chosen))
    return len(chosen)


def _low_yield(batch: Batch) -> str:
    """Why going on would be a waste, from the last rows; empty where it would not."""
    finished = Item.objects.filter(batch=batch, finished__isnull=False)
    if batch.yield_counted_since is not None:
        finished = finished.filter(finished__gt=batch.yield_counted_since)
    last = list(finished.order_by("-finished").values_list("status", flat=True)[:YIELD_ROWS])
    accepted = last.count(ItemStatus.ACCEPTED)
    if len(last) < YIELD_ROWS or accepted >= LEAST_YIELD * YIELD_ROWS:
        return ""
    return f"Only {accepted} of the last {YIELD_ROWS} rows were accepted."


def _stop(batch: Batch, why: str) -> None:
    accepted = Item.objects.filter(batch=batch, status=ItemStatus.ACCEPTED).count()
    reason = (
        f"Stopped with {accepted:,} of {batch.goal:,} rows: {why} Check the reasons, change the "
        "recipe or its checks, or resume the job."
    )
    Batch.objects.filter(pk=batch.pk, status__in=ACTIVE).update(
        status=BatchStatus.FAILED, reason=reason, finished=timezone.now()
    )


def _hold_to_budget(batch: Batch) -> None:
    """Pauses a job that has used up its day's tokens."""
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


def resume_budgets() -> int:
    """Jobs whose budget was used up on an earlier day go on. Returns how many."""
    return Batch.objects.filter(
        status=BatchStatus.PAUSED, resumes_on__lte=timezone.localdate()
    ).update(status=BatchStatus.QUEUED, reason="", resumes_on=None, day=None)
