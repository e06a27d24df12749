"""The fenced lease of a server's one pump: compare-and-set, the same on SQLite and PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from apps.batch.models import PumpLease
from apps.batch.store import statements
from apps.runtime.process_identity import current_process_id, has_exited

# A pump renews it every second (`ledger.tend`); a database may keep it waiting for a while. Of a
# process on the same machine that has ended nobody waits for it.
LEASE = timedelta(seconds=15)


class LeaseLost(Exception):
    """Another pump has taken over: stop at once, what you know is no longer true."""


@dataclass(frozen=True, slots=True)
class Lease:
    server_id: int
    token: int


def take(server_id: int) -> Lease | None:
    """The lease, if nobody holds it; None while another pump does."""
    found, _ = PumpLease.objects.get_or_create(
        server_id=server_id, defaults={"until": Now() - LEASE, "heartbeat": Now()}
    )
    if server_id in held():  # if somebody takes it from now on, the token is another one
        return None
    taken = PumpLease.objects.filter(pk=found.pk, token=found.token).update(
        token=found.token + 1, until=Now() + LEASE, heartbeat=Now(), holder=current_process_id()
    )
    return Lease(server_id, found.token + 1) if taken else None


def held() -> set[int]:
    """The servers under whose lease somebody may be at work, by the database's clock.

    The clocks of two machines may be minutes apart: one that is ahead would take every lease away
    from the other.
    """
    leases = PumpLease.objects.filter(until__gte=Now()).values_list("server_id", "holder")
    return {server_id for server_id, holder in leases if not has_exited(holder)}


def give_back(lease: Lease) -> None:
    PumpLease.objects.filter(server_id=lease.server_id, token=lease.token).update(
        until=Now() - timedelta(seconds=1), heartbeat=Now()
    )


@contextmanager
def fence(lease: Lease) -> Iterator[datetime]:
    """A transaction that only the lease's holder gets into. Renews the lease on the way.

    Gives the database's time.

    The UPDATE locks the lease's row until the commit, so nobody can take over in between: what is
    written inside was written by the one pump of its server.

    Raises:
        LeaseLost: nothing was written.
    """
    with transaction.atomic():
        now = statements.renew(lease.server_id, lease.token, LEASE)
        if now is None:
            raise LeaseLost(f"The lease of server {lease.server_id} went to another pump.")
        yield now


def renew(lease: Lease) -> None:
    with fence(lease):
        pass
