"""Writing what happened to rows, behind the fence of the pump's lease."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from apps.batch.handlers import LateRejection, Verdict
from apps.batch.models import Item, ItemStatus
from apps.batch.store import statements
from apps.batch.store.job_writes import clear_wait_reasons
from apps.batch.store.leases import Lease, fence
from apps.batch.store.row_events import Finished, Returned, RowEvent, Started
from apps.core.text.storable import to_storable

MAX_ATTEMPTS = 3
RECOVERED = "The worker ended while this row was running. The row starts again."


def recover_rows(lease: Lease) -> int:
    """Return rows that a dead pump left running to pending. Returns their number."""
    with fence(lease):
        left = Item.objects.filter(
            batch__server_id=lease.server_id, status=ItemStatus.RUNNING, token__lt=lease.token
        )
        # By keys: some databases turn an update through a join into a subquery over all items.
        keys = dict(left.values_list("pk", "attempts"))
        dead = [pk for pk, attempts in keys.items() if attempts >= MAX_ATTEMPTS]
        Item.objects.filter(pk__in=dead).update(
            status=ItemStatus.FAILED,
            code="worker_died",
            reason=f"The worker stopped {MAX_ATTEMPTS} times while running this row.",
            finished=timezone.now(),
        )
        Item.objects.filter(pk__in=keys.keys() - set(dead)).update(
            status=ItemStatus.PENDING, reason=RECOVERED
        )
        # This pump sets the reasons of the last one again where they still hold.
        clear_wait_reasons(lease.server_id)
    return len(keys)


def reject_late(lease: Lease, rows: Sequence[LateRejection]) -> None:
    """Reject accepted rows that nobody reviewed."""
    with fence(lease):
        for row in rows:
            Item.objects.filter(pk=row.item_id, status=ItemStatus.ACCEPTED, reviewed=False).update(
                status=ItemStatus.REJECTED, code=row.code, reason=to_storable(row.reason)
            )


def write_events(lease: Lease, events: Sequence[RowEvent]) -> None:
    """Write the events of a few rows in one transaction.

    Raises:
        LeaseLost: nothing was written.
    """
    with fence(lease) as now:
        _start(lease, [event for event in events if isinstance(event, Started)], now)
        _finish(lease, [event for event in events if isinstance(event, Finished)], now)
        for event in events:
            if isinstance(event, Returned):
                _return(lease, event, now)


def _start(lease: Lease, events: list[Started], now: datetime) -> None:
    if not events:
        return
    statements.run_each(statements.START, [(lease.token, event.row.pk) for event in events])
    for batch_id, model in {event.row.batch_id: event.model for event in events}.items():
        statements.run(statements.BEGIN, (model, statements.moment(now), batch_id))


def _finish(lease: Lease, events: list[Finished], now: datetime) -> None:
    by_batch: dict[int, list[Finished]] = {}
    for event in events:
        by_batch.setdefault(event.row.batch_id, []).append(event)
    for batch_id, of_batch in by_batch.items():
        prints = [event.outcome.fingerprint for event in of_batch]
        taken = statements.rows_by_fingerprint(batch_id, [one for one in prints if one is not None])
        written = [event for event in of_batch if _finish_row(lease, event, now, taken)]
        if written:
            statements.run(statements.COUNT, (*_sums(written), batch_id))


def _sums(events: list[Finished]) -> tuple[float, ...]:
    usages = [event.outcome.usage for event in events]
    return (
        sum(event.active_seconds for event in events),
        sum(_countable(usage.prompt_tokens) for usage in usages),
        sum(_countable(usage.cached_tokens) for usage in usages),
        sum(_countable(usage.completion_tokens) for usage in usages),
        sum(event.outcome.tokens for event in events if not event.outcome.is_counted),
    )


def _finish_row(lease: Lease, event: Finished, now: datetime, taken: dict[str, int]) -> bool:
    """Finish a row, as a duplicate if its fingerprint is taken.

    Args:
        taken: row index by fingerprint of accepted rows; an accepted row is added.

    Returns False if the row no longer belongs to this lease.
    """
    outcome, usage = event.outcome, event.outcome.usage
    verdict, code, reason = outcome.verdict, outcome.code, outcome.reason
    fingerprint = outcome.fingerprint if verdict is Verdict.ACCEPTED else None
    if fingerprint is not None and fingerprint in taken:
        verdict, code = Verdict.REJECTED, "duplicate"
        reason, fingerprint = f"Duplicate of row {taken[fingerprint] + 1}.", None
    written = statements.run(
        statements.FINISH,
        (
            *(verdict.value, code, to_storable(reason), statements.stored(outcome.output)),
            *(to_storable(outcome.prompt), to_storable(outcome.raw), fingerprint),
            *(outcome.minhash or None, statements.moment(now)),
            *map(_countable, (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)),
            *(event.row.pk, lease.token),
        ),
    )
    if written and fingerprint is not None:
        taken[fingerprint] = event.row.index
    return bool(written)


def _return(lease: Lease, event: Returned, now: datetime) -> None:
    own = Item.objects.filter(pk=event.row.pk, status=ItemStatus.RUNNING, token=lease.token)
    if event.permanent or (event.counts and event.row.attempts + 1 >= MAX_ATTEMPTS):
        tries = "" if event.permanent else f" (tried {event.row.attempts + 1} times)"
        own.update(
            status=ItemStatus.FAILED,
            code=event.code,
            reason=to_storable(f"{event.reason}{tries}"),
            finished=now,
        )
        return
    own.update(
        status=ItemStatus.PENDING,
        reason=to_storable(event.reason),
        attempts=F("attempts") - (0 if event.counts else 1),
        not_before=now + timedelta(seconds=event.wait_s) if event.wait_s else None,
    )


def _countable(tokens: int) -> int:
    """Clip to what a column of 31 bits holds: a server may report anything."""
    return min(max(0, tokens), 2**31 - 1)
