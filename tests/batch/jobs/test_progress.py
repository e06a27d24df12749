"""Reading a job: rows, fingerprints, throughput, changes of its spec."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.batch import services
from apps.batch.models import Batch, BatchServer, BatchStatus, ItemStatus, ThroughputHistory
from apps.batch.pump import metrics
from apps.batch.scheduler.concurrency_probe import ProbeResult
from apps.batch.scheduler.throughput import Point
from apps.batch.store import leases
from apps.servers.models import Server
from tests.batch.conftest import MakeBatch

pytestmark = pytest.mark.django_db(transaction=True)


def test_accepted_rows_since_follows_the_order_of_acceptance(make_batch: MakeBatch) -> None:
    batch, now = make_batch(4), timezone.now()
    for index, seconds in ((2, 1), (0, 2), (1, 2)):
        batch.items.filter(index=index).update(
            status=ItemStatus.ACCEPTED, finished=now + timedelta(seconds=seconds)
        )
    every = list(services.accepted_rows_since(batch.pk, None, -1))
    assert [item.index for item in every] == [2, 0, 1]
    later = services.accepted_rows_since(batch.pk, every[1].finished, every[1].index)
    assert [item.index for item in later] == [1]


def test_the_slots_are_those_of_all_servers_at_work(make_batch: MakeBatch, server: Server) -> None:
    batch = make_batch(1)
    own = services.compute_progress(batch).width
    assert own == server.slots_of(batch.model)
    batch.all_servers = True
    assert services.compute_progress(batch).width == own  # nobody else has joined yet
    other, away, spare = (
        Server.objects.create(
            name=name, base_url=f"http://{name}/v1", stored_facts={"slots": slots}
        )
        for name, slots in (("other", 3), ("away", 5), ("spare", 7))
    )
    for one in (server, other):
        BatchServer.objects.create(batch=batch, server=one)
    BatchServer.objects.create(batch=batch, server=away, state=BatchServer.State.AWAY)
    BatchServer.objects.create(batch=batch, server=spare, is_fallback=True)
    assert services.compute_progress(batch).width == own + 3
    batch.servers.filter(is_fallback=False).update(state=BatchServer.State.AWAY)
    assert services.compute_progress(batch).width == 7
    batch.width = 2
    assert services.compute_progress(batch).width == 2


def test_has_accepted_row_ignores_the_row_itself(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    batch.items.update(status=ItemStatus.ACCEPTED, fingerprint="a")
    pk = batch.items.get().pk
    assert not services.has_accepted_row(batch.pk, "a", other_than=pk)
    assert services.has_accepted_row(batch.pk, "a", other_than=0)


def test_compute_progress_estimates_the_end_by_the_accepted_share(
    make_batch: MakeBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, now = make_batch(8), timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    for index in range(4):
        status = ItemStatus.ACCEPTED if index < 2 else ItemStatus.REJECTED
        batch.items.filter(index=index).update(
            status=status, finished=now - timedelta(seconds=6 - 2 * index), completion_tokens=10
        )
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.RUNNING, goal=6)
    batch = Batch.objects.select_related("server").get(pk=batch.pk)
    progress = services.compute_progress(batch)
    assert progress.rows_per_s == pytest.approx(0.5, rel=0.2)
    assert progress.eta_s == pytest.approx(4 / (0.5 * 0.5), rel=0.2)
    assert (progress.finished, progress.open, progress.wanted) == (4, 4, 6)


def test_compute_progress_knows_no_rate_without_rows(make_batch: MakeBatch) -> None:
    progress = services.compute_progress(make_batch(2))
    assert (progress.rows_per_s, progress.tokens_per_s, progress.eta_s) == (None, None, None)
    assert progress.cached_share is None


def test_throughput_of_a_job_that_never_ran_is_empty(make_batch: MakeBatch) -> None:
    assert services.throughput_of(make_batch(1).pk) == services.throughput_of(0)


def test_append_points_and_store_probe_are_read_back(make_batch: MakeBatch, server: Server) -> None:
    batch = make_batch(1)
    lease = leases.acquire(server.pk)
    assert lease is not None
    point, probe = Point(100.0, 5.0, 20.0, 3, 60), ProbeResult("m", 4, {1: 30.0, 4: 80.0}, 4)
    metrics.append_points(lease, {batch.pk: point, 0: point})
    metrics.store_probe(lease, batch.pk, probe)
    found = services.throughput_of(batch.pk)
    assert (found.points, found.probe) == ([point], probe)
    assert metrics.recent_probe(server.pk, "m", 4) == probe
    assert metrics.recent_probe(server.pk, "m", 8) is None
    long_ago = timezone.now() - metrics.PROBE_VALID - timedelta(hours=1)
    ThroughputHistory.objects.update(probed_at=long_ago)
    assert metrics.recent_probe(server.pk, "m", 4) is None


def test_update_spec_and_change_batch_store_what_they_are_given(make_batch: MakeBatch) -> None:
    batch = make_batch(1, tokens=1)
    services.update_spec(batch, lambda spec: {**spec, "more": 2})
    services.change_batch(batch, weight=3, width=None, name="Other")
    batch = Batch.objects.get(pk=batch.pk)
    assert batch.spec == {"tokens": 1, "more": 2}
    assert (batch.weight, batch.width, batch.name) == (3, None, "Other")


def test_continue_refill_requeues_only_a_finished_job_with_a_goal(make_batch: MakeBatch) -> None:
    batch = make_batch(2)
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.DONE)
    assert not services.continue_refill(batch)
    Batch.objects.filter(pk=batch.pk).update(goal=2)
    assert services.continue_refill(batch)
    assert not services.continue_refill(batch)
    batch.refresh_from_db()
    assert (batch.status, batch.rows_before_resume) == (BatchStatus.QUEUED, 2)
