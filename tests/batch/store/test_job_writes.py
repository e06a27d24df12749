"""States and reasons of a server's jobs, written by its pump."""

import pytest
from django.utils import timezone

from apps.batch.handlers import LateRejection
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.store import job_writes
from apps.batch.store.leases import Lease
from tests.batch.conftest import MakeBatch

A, R, F, P = ItemStatus.ACCEPTED, ItemStatus.REJECTED, ItemStatus.FAILED, ItemStatus.PENDING


def set_rows(batch: Batch, *statuses: ItemStatus) -> None:
    for index, status in enumerate(statuses):
        batch.items.filter(index=index).update(status=status, finished=timezone.now())


@pytest.mark.parametrize(
    ("rows", "status", "reason"),
    [
        ((A, R), BatchStatus.DONE, ""),
        ((A, F), BatchStatus.DONE, ""),
        ((R, F), BatchStatus.DONE, "No row was accepted. The reasons are below."),
        ((F, F), BatchStatus.FAILED, "All rows failed. The reasons are below."),
        ((A, P), BatchStatus.QUEUED, ""),
        ((), BatchStatus.DONE, ""),
    ],
)
def test_finish_batches_by_their_rows(
    make_batch: MakeBatch, lease: Lease, rows: tuple[ItemStatus, ...], status: str, reason: str
) -> None:
    batch = make_batch(len(rows))
    set_rows(batch, *rows)
    assert job_writes.finish_batches(lease, [batch.pk]) == []
    batch.refresh_from_db()
    assert (batch.status, batch.reason) == (status, reason)
    assert (batch.finished is None) is (status == BatchStatus.QUEUED)


def test_finish_batches_refills_before_it_finishes(make_batch: MakeBatch, lease: Lease) -> None:
    batch = make_batch(2)
    Batch.objects.update(goal=2)
    set_rows(batch, A, R)
    assert job_writes.finish_batches(lease, [batch.pk]) == [batch.pk]
    batch.refresh_from_db()
    assert (batch.status, batch.total) == (BatchStatus.QUEUED, 3)


def test_finish_batches_leaves_a_paused_job(make_batch: MakeBatch, lease: Lease) -> None:
    batch = make_batch(1)
    set_rows(batch, A)
    Batch.objects.update(status=BatchStatus.PAUSED)
    job_writes.finish_batches(lease, [batch.pk])
    batch.refresh_from_db()
    assert batch.status == BatchStatus.PAUSED


def test_set_wait_reason_reaches_active_jobs_alone(make_batch: MakeBatch, lease: Lease) -> None:
    first, second, paused = make_batch(1), make_batch(1), make_batch(1)
    Batch.objects.filter(pk=paused.pk).update(status=BatchStatus.PAUSED, reason="Paused by you.")
    job_writes.set_wait_reason(lease, "Waiting.")
    reasons = dict(Batch.objects.values_list("pk", "reason"))
    assert reasons == {first.pk: "Waiting.", second.pk: "Waiting.", paused.pk: "Paused by you."}
    job_writes.set_wait_reason(lease, "", [first.pk, paused.pk])
    reasons = dict(Batch.objects.values_list("pk", "reason"))
    assert reasons == {first.pk: "", second.pk: "Waiting.", paused.pk: "Paused by you."}


def test_set_status_stores_a_reason_with_any_characters(
    make_batch: MakeBatch, lease: Lease
) -> None:
    batch, cancelled = make_batch(1), make_batch(1)
    Batch.objects.filter(pk=cancelled.pk).update(status=BatchStatus.CANCELLED)
    ids = [batch.pk, cancelled.pk]
    job_writes.set_status(lease, ids, status=BatchStatus.FAILED, reason="a\0b")
    found = list(Batch.objects.order_by("pk").values_list("status", "reason"))
    assert found == [("failed", "a\ufffdb"), ("cancelled", "")]


def test_reject_late_leaves_reviewed_rows(make_batch: MakeBatch, lease: Lease) -> None:
    batch = make_batch(3)
    set_rows(batch, A, A, P)
    batch.items.filter(index=1).update(reviewed=True)
    rows = batch.items.order_by("index")
    job_writes.reject_late(lease, [LateRejection(row.pk, "similar", "Similar.") for row in rows])
    found = list(rows.values_list("status", "code"))
    assert found == [("rejected", "similar"), ("accepted", ""), ("pending", "")]


def test_recover_rows_returns_those_of_an_earlier_lease(
    make_batch: MakeBatch, lease: Lease
) -> None:
    batch = make_batch(4)
    Batch.objects.update(reason="Waiting: only 3 MB left.")
    for index, (attempts, token) in enumerate([(1, 0), (3, 0), (1, lease.token)]):
        batch.items.filter(index=index).update(
            status=ItemStatus.RUNNING, attempts=attempts, token=token, server=lease.server_id
        )
    assert job_writes.recover_rows(lease) == 2
    found = list(Item.objects.order_by("index").values_list("status", "code"))
    assert found == [("pending", ""), ("failed", "worker_died"), ("running", ""), ("pending", "")]
    batch.refresh_from_db()
    assert batch.reason == ""
