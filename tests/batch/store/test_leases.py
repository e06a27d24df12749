"""Leases go by the clock of the database, whatever a machine's own says."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from apps.batch import services
from apps.batch.models import PumpLease
from apps.batch.store import leases
from apps.servers.models import Server
from tests.batch.conftest import MakeBatch

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("minutes", [-5, 5])
def test_a_machine_with_another_clock_takes_no_lease_away(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    make_batch(1)
    held = leases.acquire(server.pk)
    assert held is not None
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(minutes=minutes))
    assert leases.acquire(server.pk) is None
    assert services.servers_to_wake() == []
    monkeypatch.undo()
    leases.release(held)
    assert services.servers_to_wake() == [server.pk]


def test_a_lease_that_nobody_renews_lapses(server: Server) -> None:
    first = leases.acquire(server.pk)
    PumpLease.objects.update(until=Now() - timedelta(seconds=1))
    second = leases.acquire(server.pk)
    assert first is not None
    assert second is not None
    assert second.token == first.token + 1
    with pytest.raises(leases.LeaseLost):
        leases.renew(first)
    with leases.fence(second) as now:
        assert abs(now - timezone.now()) < timedelta(minutes=1)  # one machine: one clock
