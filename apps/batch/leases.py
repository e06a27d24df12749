"""The fenced lease of a server's one pump: compare-and-set, the same on SQLite and PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from apps.batch import holders, statements
from apps.batch.models import PumpLease

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
    now = timezone.now()
    found, _ = PumpLease.objects.get_or_create(
        server_id=server_id, defaults={"until": now - LEASE, "heartbeat": now}
    )
    if is_held(found):
        return None
    taken = PumpLease.objects.filter(pk=found.pk, token=found.token).update(
        token=found.token + 1, until=now + LEASE, heartbeat=now, holder=holders.myself()
    )
    return Lease(server_id, found.token + 1) if taken else None


def is_held(lease: PumpLease) -> bool:
    """Whether somebody may be at work under it."""
    return lease.until >= timezone.now() and not holders.is_gone(lease.holder)


def give_back(lease: Lease) -> None:
    now = timezone.now()
    PumpLease.objects.filter(server_id=lease.server_id, token=lease.token).update(
        until=now - timedelta(seconds=1), heartbeat=now
    )


@contextmanager
def fence(lease: Lease) -> Iterator[None]:
    """A transaction that only the lease's holder gets into. Renews the lease on the way.

    The UPDATE locks the lease's row until the commit, so nobody can take over in between: what is
    written inside was written by the one pump of its server.

    Raises:
        LeaseLost: nothing was written.
    """
    now = timezone.now()
    with transaction.atomic():
        until, heartbeat = statements.moment(now + LEASE), statements.moment(now)
        if not statements.run(statements.RENEW, (until, heartbeat, lease.server_id, lease.token)):
            raise LeaseLost(f"The lease of server {lease.server_id} went to another pump.")
        yield


def renew(lease: Lease) -> None:
    with fence(lease):
        pass
