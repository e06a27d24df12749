"""SQL statements that run for every row.

Django compiles a query each time it runs, which took a third of the CPU time of a row. The same
text serves SQLite and PostgreSQL. Called by `row_writes` and `leases`, inside their transactions.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from apps.batch.models import Batch, Item, PumpLease

_ITEM, _BATCH, _LEASE = (f'"{model._meta.db_table}"' for model in (Item, Batch, PumpLease))
_output = Item._meta.get_field("output")

# By the clock of PostgreSQL, which all machines share; SQLite has one machine and its clock.
RENEW = {
    "sqlite": (
        f'UPDATE {_LEASE} SET "until" = %s, "heartbeat" = %s '  # noqa: S608 - names of ours
        'WHERE "server_id" = %s AND "token" = %s RETURNING "heartbeat"'
    ),
    "postgresql": (
        f'UPDATE {_LEASE} SET "until" = statement_timestamp() + %s, '  # noqa: S608
        '"heartbeat" = statement_timestamp() '
        'WHERE "server_id" = %s AND "token" = %s RETURNING "heartbeat"'
    ),
}
START = (
    f'UPDATE {_ITEM} SET "status" = \'running\', "token" = %s, '  # noqa: S608
    '"attempts" = "attempts" + 1, "reason" = \'\', "not_before" = NULL '
    'WHERE "id" = %s AND "status" = \'pending\''
)
BEGIN = (
    f'UPDATE {_BATCH} SET "status" = \'running\', "reason" = \'\', "model" = %s, '  # noqa: S608
    '"started" = COALESCE("started", %s) WHERE "id" = %s AND "status" = \'queued\''
)
FINISH = (
    f'UPDATE {_ITEM} SET "status" = %s, "code" = %s, "reason" = %s, "output" = %s, '  # noqa: S608
    '"prompt" = %s, "raw" = %s, "fingerprint" = %s, "minhash" = %s, "finished" = %s, '
    '"prompt_tokens" = "prompt_tokens" + %s, "cached_tokens" = "cached_tokens" + %s, '
    '"completion_tokens" = "completion_tokens" + %s '
    'WHERE "id" = %s AND "status" = \'running\' AND "token" = %s'
)
COUNT = (
    f'UPDATE {_BATCH} SET "active_seconds" = "active_seconds" + %s, '  # noqa: S608
    '"prompt_tokens" = "prompt_tokens" + %s, "cached_tokens" = "cached_tokens" + %s, '
    '"completion_tokens" = "completion_tokens" + %s, '
    '"estimated_tokens" = "estimated_tokens" + %s WHERE "id" = %s'
)


def run(statement: str, values: Sequence[Any]) -> int:
    """Execute a statement. Returns the number of changed rows.

    Args:
        values: texts, numbers, bytes, None, and what `stored` and `moment` return.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        changed: int = cursor.rowcount
    return changed


def renew(server_id: int, token: int, seconds: timedelta) -> datetime | None:
    """Renew a lease. Returns the time of the database; None if the lease has another token."""
    values: list[Any] = [seconds]
    if connection.vendor == "sqlite":
        now = timezone.now()
        values = [moment(now + seconds), moment(now)]
    with connection.cursor() as cursor:
        cursor.execute(RENEW[connection.vendor], [*values, server_id, token])
        row = cursor.fetchone()
    if row is None:
        return None
    return now if connection.vendor == "sqlite" else row[0]


def run_each(statement: str, values: Sequence[Sequence[Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)


def rows_by_fingerprint(batch_id: int, fingerprints: Sequence[str]) -> dict[str, int]:
    """Return the index of accepted rows by fingerprint."""
    if not fingerprints:
        return {}
    marks = ", ".join(["%s"] * len(fingerprints))
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT "fingerprint", "index" FROM {_ITEM} '  # noqa: S608
            f'WHERE "batch_id" = %s AND "fingerprint" IN ({marks}) AND "status" = \'accepted\'',
            [batch_id, *fingerprints],
        )
        return dict(cursor.fetchall())


def stored(output: Any) -> Any:
    """Convert an output for the database."""
    return _output.get_db_prep_save(output, connection)


def moment(when: datetime) -> Any:
    """Convert a time for the database."""
    return connection.ops.adapt_datetimefield_value(when)
