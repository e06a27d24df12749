"""The fenced lease of a server's pump: compare-and-set, the same on SQLite and PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from apps.batch.models import PumpLease
from apps.runtime.process_identity import current_process_id, has_exited

# A pump renews its lease every second; a busy database may delay that. The lease of a process on
# the same machine that has exited is free at once.
LEASE = timedelta(seconds=15)

_TABLE = f'"{PumpLease._meta.db_table}"'
# SQL, since it runs for every row and Django compiles a query each time.
# By the clock of PostgreSQL, which all machines share; SQLite has one machine and its clock.
_RENEW = {
    "sqlite": (
        f'UPDATE {_TABLE} SET "until" = %s, "heartbeat" = %s '  # noqa: S608 - names of ours
        'WHERE "server_id" = %s AND "token" = %s RETURNING "heartbeat"'
    ),
    "postgresql": (
        f'UPDATE {_TABLE} SET "until" = statement_timestamp() + %s, '  # noqa: S608
        '"heartbeat" = statement_timestamp() '
        'WHERE "server_id" = %s AND "token" = %s RETURNING "heartbeat"'
    ),
}


class LeaseLost(Exception):
    """Another pump has taken over. The holder must stop: its data is out of date."""


@dataclass(frozen=True, slots=True)
class Lease:
    server_id: int
    token: int


def acquire(server_id: int) -> Lease | None:
    """Acquire the lease; None while another pump holds it."""
    found, _ = PumpLease.objects.get_or_create(
        server_id=server_id, defaults={"until": Now() - LEASE, "heartbeat": Now()}
    )
    if server_id in held_servers():  # whoever acquires it from now on changes the token
        return None
    taken = PumpLease.objects.filter(pk=found.pk, token=found.token).update(
        token=found.token + 1, until=Now() + LEASE, heartbeat=Now(), holder=current_process_id()
    )
    return Lease(server_id, found.token + 1) if taken else None


def held_servers() -> set[int]:
    """Return the servers whose lease is valid, by the clock of the database.

    The clocks of two machines may differ by minutes: the one ahead would take every lease from
    the other.
    """
    leases = PumpLease.objects.filter(until__gte=Now()).values_list("server_id", "holder")
    return {server_id for server_id, holder in leases if not has_exited(holder)}


def release(lease: Lease) -> None:
    PumpLease.objects.filter(server_id=lease.server_id, token=lease.token).update(
        until=Now() - timedelta(seconds=1), heartbeat=Now()
    )


@contextmanager
def fence(lease: Lease) -> Iterator[datetime]:
    """Open a transaction for the holder of the lease, and renew the lease.

    Yields the time of the database. The UPDATE locks the row of the lease until the commit, so no
    other pump can take over in between.

    Raises:
        LeaseLost: nothing was written.
    """
    with transaction.atomic():
        now = _renew(lease)
        if now is None:
            raise LeaseLost(f"The lease of server {lease.server_id} went to another pump.")
        yield now


def renew(lease: Lease) -> None:
    with fence(lease):
        pass


def moment(when: datetime) -> Any:
    """Convert a time for a statement of our own."""
    return connection.ops.adapt_datetimefield_value(when)


def _renew(lease: Lease) -> datetime | None:
    """Renew a lease. Returns the time of the database; None if the lease has another token."""
    values: list[Any] = [LEASE]
    if connection.vendor == "sqlite":
        now = timezone.now()
        values = [moment(now + LEASE), moment(now)]
    with connection.cursor() as cursor:
        cursor.execute(_RENEW[connection.vendor], [*values, lease.server_id, lease.token])
        row = cursor.fetchone()
    if row is None:
        return None
    return now if connection.vendor == "sqlite" else row[0]
