"""What people do with jobs, and how many queries a page costs."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.batch import services
from apps.batch.errors import WrongState
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.servers.models import Server
from tests.batch.conftest import MakeBatch

ALLOWED = {
    services.pause_batch: {"queued", "running"},
    services.resume_batch: {"paused", "failed"},
    services.cancel_batch: {"queued", "running", "paused", "failed"},
}


@pytest.mark.parametrize("status", BatchStatus.values)
@pytest.mark.parametrize("action", ALLOWED, ids=lambda action: action.__name__)
def test_what_can_be_done_in_which_state(make_batch: MakeBatch, action, status: str) -> None:  # type: ignore[no-untyped-def]
    batch = make_batch(1)
    Batch.objects.filter(pk=batch.pk).update(status=status)
    if status in ALLOWED[action]:
        action(batch)
        assert batch.status != status or status == "queued"
    else:
        with pytest.raises(WrongState):
            action(batch)
        assert Batch.objects.get(pk=batch.pk).status == status


def test_retry_failed(make_batch: MakeBatch) -> None:
    batch = make_batch(3)
    with pytest.raises(WrongState):
        services.retry_failed_rows(batch)
    batch.items.filter(index__lt=2).update(
        status=ItemStatus.FAILED, attempts=3, code="stalled", reason="x", finished=timezone.now()
    )
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.DONE)
    assert services.retry_failed_rows(batch) == 2
    assert batch.status == BatchStatus.QUEUED
    assert set(batch.items.values_list("status", "attempts", "code")) == {("pending", 0, "")}


def test_a_cancelled_job_is_not_retried(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    batch.items.update(status=ItemStatus.FAILED)
    services.cancel_batch(batch)
    with pytest.raises(WrongState):
        services.retry_failed_rows(batch)


def test_which_servers_are_woken(make_batch: MakeBatch, server: Server) -> None:
    assert services.servers_to_wake() == []
    batch = make_batch(1)
    assert services.servers_to_wake() == [server.pk]
    services.pause_batch(batch)
    assert services.servers_to_wake() == []


def test_a_job_whose_server_was_removed_has_failed(make_batch: MakeBatch, server: Server) -> None:
    batch = make_batch(1)
    server.delete()
    assert services.servers_to_wake() == []
    batch.refresh_from_db()
    assert (batch.status, batch.server) == (BatchStatus.FAILED, None)
    assert "removed" in batch.reason


def test_progress_costs_the_same_for_any_number_of_rows(make_batch: MakeBatch) -> None:
    few, many = make_batch(3), make_batch(3000)
    for batch in (few, many):
        batch.items.filter(index=0).update(status=ItemStatus.REJECTED, code="length")
    queries = []
    for batch in (few, many):
        with CaptureQueriesContext(connection) as captured:
            progress = services.compute_progress(
                Batch.objects.select_related("server").get(pk=batch.pk)
            )
        queries.append(len(captured))
        assert progress.reasons == [("rejected", "length", 1)]
        assert progress.finished + progress.open == batch.total
    assert queries[0] == queries[1] <= 3


def test_many_rows_are_queued_with_the_queries_of_a_few(make_batch: MakeBatch) -> None:
    queries = []
    for rows in (10, 20_000):
        with CaptureQueriesContext(connection) as captured:
            batch = make_batch(rows)
        queries.append(len(captured))
        queued = Batch.objects.select_related("server").get(pk=batch.pk)
        assert services.compute_progress(queued).open == rows
    assert queries[0] == queries[1]


def test_counts_of_several_jobs_are_one_query(make_batch: MakeBatch) -> None:
    batches = [make_batch(2), make_batch(3)]
    with CaptureQueriesContext(connection) as captured:
        counts = services.count_rows_by_status(batches)
    assert len(captured) == 1
    assert [counts[batch.pk]["pending"] for batch in batches] == [2, 3]
    assert Item.objects.count() == 5
