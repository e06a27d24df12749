"""Writing what happened to rows, behind the fence of the pump's lease.

Statements that run for every row are SQL: Django compiles a query each time it runs, which took a
third of the CPU time of a row. The same text serves SQLite and PostgreSQL.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import F

from apps.batch.handlers import Verdict
from apps.batch.models import Batch, Item, ItemStatus
from apps.batch.store.leases import Lease, fence, moment
from apps.batch.store.row_events import Finished, Returned, RowEvent, Started
from apps.core.text.storable import to_storable

MAX_ATTEMPTS = 3

_ITEM, _BATCH = (f'"{model._meta.db_table}"' for model in (Item, Batch))
_output = Item._meta.get_field("output")
_START = (
    f"UPDATE {_ITEM} SET \"status\" = 'running', "  # noqa: S608
    '"attempts" = "attempts" + 1, "reason" = \'\', "not_before" = NULL '
    'WHERE "id" = %s AND "status" = \'pending\' AND "server_id" = %s AND "token" = %s'
)
_BEGIN = (
    f"UPDATE {_BATCH} SET \"status\" = 'running', \"reason\" = '', "  # noqa: S608
    '"model" = CASE WHEN "model" = \'\' THEN %s ELSE "model" END, '
    '"started" = COALESCE("started", %s) WHERE "id" = %s AND "status" = \'queued\''
)
_FINISH = (
    f'UPDATE {_ITEM} SET "status" = %s, "code" = %s, "reason" = %s, "output" = %s, '  # noqa: S608
    '"prompt" = %s, "raw" = %s, "fingerprint" = %s, "minhash" = %s, "finished" = %s, '
    '"prompt_tokens" = "prompt_tokens" + %s, "cached_tokens" = "cached_tokens" + %s, '
    '"completion_tokens" = "completion_tokens" + %s '
    'WHERE "id" = %s AND "status" = \'running\' AND "server_id" = %s AND "token" = %s'
)
_COUNT = (
    f'UPDATE {_BATCH} SET "active_seconds" = "active_seconds" + CASE '  # noqa: S608
    'WHEN "active_until" <= %s THEN %s WHEN "active_until" < %s THEN %s - "active_until" '
    'ELSE 0 END, "active_until" = CASE WHEN "active_until" < %s THEN %s ELSE "active_until" END, '
    '"prompt_tokens" = "prompt_tokens" + %s, "cached_tokens" = "cached_tokens" + %s, '
    '"completion_tokens" = "completion_tokens" + %s, '
    '"estimated_tokens" = "estimated_tokens" + %s WHERE "id" = %s'
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
    _run_each(_START, [(event.row.pk, lease.server_id, lease.token) for event in events])
    for batch_id, model in sorted({event.row.batch_id: event.model for event in events}.items()):
        _run(_BEGIN, (model, moment(now), batch_id))


def _finish(lease: Lease, events: list[Finished], now: datetime) -> None:
    by_batch: dict[int, list[Finished]] = {}
    for event in events:
        by_batch.setdefault(event.row.batch_id, []).append(event)
    for batch_id, of_batch in sorted(by_batch.items()):  # the order in which all pumps lock them
        prints = [event.outcome.fingerprint for event in of_batch]
        taken = _rows_by_fingerprint(batch_id, [one for one in prints if one is not None])
        written = [event for event in of_batch if _finish_row(lease, event, now, taken)]
        if written:
            _run(_COUNT, (*_active(written, now), *_sums(written), batch_id))


def _active(events: list[Finished], now: datetime) -> tuple[float, ...]:
    """Return the values that add the seconds up to now to those in which any server worked."""
    seconds, end = sum(event.active_seconds for event in events), now.timestamp()
    return (end - seconds, seconds, end, end, end, end)


def _sums(events: list[Finished]) -> tuple[int, ...]:
    usages = [event.outcome.reported for event in events]
    return (
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
    outcome, usage = event.outcome, event.outcome.reported
    verdict, code, reason = outcome.verdict, outcome.code, outcome.reason
    fingerprint = outcome.fingerprint if verdict is Verdict.ACCEPTED else None
    if fingerprint is not None and fingerprint in taken:
        verdict, code = Verdict.REJECTED, "duplicate"
        reason, fingerprint = f"Duplicate of row {taken[fingerprint] + 1}.", None
    written = _run(
        _FINISH,
        (
            *(verdict.value, code, to_storable(reason), _stored(outcome.output)),
            *(to_storable(outcome.prompt), to_storable(outcome.raw), fingerprint),
            *(outcome.minhash or None, moment(now)),
            *map(_countable, (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)),
            *(event.row.pk, lease.server_id, lease.token),
        ),
    )
    if written and fingerprint is not None:
        taken[fingerprint] = event.row.index
    return bool(written)


def _return(lease: Lease, event: Returned, now: datetime) -> None:
    claimed = Item.objects.filter(pk=event.row.pk, server=lease.server_id, token=lease.token)
    own = claimed.filter(status=ItemStatus.RUNNING)
    if event.permanent or (event.counts and event.row.attempts + 1 >= MAX_ATTEMPTS):
        tries = "" if event.permanent else f" (tried {event.row.attempts + 1} times)"
        own.update(
            status=ItemStatus.FAILED,
            code=event.code,
            reason=to_storable(f"{event.reason}{tries}"),
            finished=now,
        )
        return
    returned = own.update(
        status=ItemStatus.PENDING,
        server=lease.server_id if event.keeps_claim else None,
        reason=to_storable(event.reason),
        attempts=F("attempts") - (0 if event.counts else 1),
        not_before=now + timedelta(seconds=event.wait_s) if event.wait_s else None,
    )
    if not returned:  # it got no slot
        claimed.filter(status=ItemStatus.PENDING).update(server=None)


def _countable(tokens: int) -> int:
    """Clip to what a column of 31 bits holds: a server may report anything."""
    return min(max(0, tokens), 2**31 - 1)


def _run(statement: str, values: Sequence[Any]) -> int:
    """Execute a statement. Returns the number of changed rows.

    Args:
        values: texts, numbers, bytes, None, and what `_stored` and `moment` return.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        changed: int = cursor.rowcount
    return changed


def _run_each(statement: str, values: Sequence[Sequence[Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)


def _rows_by_fingerprint(batch_id: int, fingerprints: Sequence[str]) -> dict[str, int]:
    """Return the index of accepted rows by fingerprint, which no other pump can add to now."""
    if not fingerprints:
        return {}
    if connection.vendor == "postgresql":  # SQLite has one writer
        _run(f'SELECT 1 FROM {_BATCH} WHERE "id" = %s FOR UPDATE', [batch_id])  # noqa: S608
    marks = ", ".join(["%s"] * len(fingerprints))
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT "fingerprint", "index" FROM {_ITEM} '  # noqa: S608
            f'WHERE "batch_id" = %s AND "fingerprint" IN ({marks}) AND "status" = \'accepted\'',
            [batch_id, *fingerprints],
        )
        return dict(cursor.fetchall())


def _stored(output: Any) -> Any:
    """Convert an output for the database."""
    return _output.get_db_prep_save(output, connection)
