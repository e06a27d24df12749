"""Events of rows, written behind the fence of a lease."""

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.batch.handlers import RowOutcome, Verdict
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.store import claims, leases, row_writes
from apps.batch.store.leases import Lease, LeaseLost
from apps.batch.store.row_events import Finished, PendingRow, Returned, Started
from apps.llm.events import Usage
from apps.servers.models import Server
from tests.batch.conftest import MakeBatch

ACCEPTED = RowOutcome(Verdict.ACCEPTED, output={"a": 1}, raw="abc", usage=Usage(10, 4, 6))


def started(lease: Lease, batch: Batch) -> list[PendingRow]:
    rows = claims.claim_rows(lease, batch.pk, 100)
    row_writes.write_events(lease, [Started(row, "m") for row in rows])
    return rows


def item_of(row: PendingRow) -> Item:
    return Item.objects.get(pk=row.pk)


def test_started_counts_an_attempt_and_starts_the_job(make_batch: MakeBatch, lease: Lease) -> None:
    batch = make_batch(2)
    [first, second] = started(lease, batch)
    for row in (first, second):
        item = item_of(row)
        assert (item.status, item.attempts, item.token) == (ItemStatus.RUNNING, 1, lease.token)
    batch.refresh_from_db()
    assert (batch.status, batch.model) == (BatchStatus.RUNNING, "m")
    assert batch.started is not None


def test_started_leaves_a_job_that_was_paused_meanwhile(
    make_batch: MakeBatch, lease: Lease
) -> None:
    batch = make_batch(1)
    Batch.objects.update(status=BatchStatus.PAUSED, reason="Paused by you.")
    started(lease, batch)
    batch.refresh_from_db()
    assert (batch.status, batch.reason) == (BatchStatus.PAUSED, "Paused by you.")


def test_finished_adds_usage_to_row_and_job(make_batch: MakeBatch, lease: Lease) -> None:
    batch = make_batch(3)
    rows = started(lease, batch)
    silent = RowOutcome(Verdict.ACCEPTED, raw="x" * 40)
    outcomes = [ACCEPTED, ACCEPTED, silent]
    row_writes.write_events(
        lease, [Finished(row, outcome, 0.5) for row, outcome in zip(rows, outcomes, strict=True)]
    )
    batch.refresh_from_db()
    assert (batch.prompt_tokens, batch.cached_tokens, batch.completion_tokens) == (20, 8, 12)
    assert (batch.estimated_tokens, batch.active_seconds) == (10, 1.5)
    item = item_of(rows[0])
    assert (item.status, item.output, item.raw, item.prompt_tokens) == (
        ItemStatus.ACCEPTED,
        {"a": 1},
        "abc",
        10,
    )
    assert item.finished is not None


def test_finished_rejects_a_taken_fingerprint(make_batch: MakeBatch, lease: Lease) -> None:
    rows = started(lease, make_batch(3))
    same = RowOutcome(Verdict.ACCEPTED, fingerprint="f")
    row_writes.write_events(lease, [Finished(row, same, 0.0) for row in rows[:2]])
    row_writes.write_events(lease, [Finished(rows[2], same, 0.0)])
    found = [(item_of(row).status, item_of(row).code) for row in rows]
    assert found == [("accepted", ""), ("rejected", "duplicate"), ("rejected", "duplicate")]
    assert item_of(rows[2]).reason == "Duplicate of row 1."
    assert item_of(rows[2]).fingerprint is None


def test_finished_ignores_a_row_that_was_returned(make_batch: MakeBatch, lease: Lease) -> None:
    batch = make_batch(1)
    [row] = started(lease, batch)
    row_writes.write_events(lease, [Returned(row)])
    row_writes.write_events(lease, [Finished(row, ACCEPTED, 1.0)])
    batch.refresh_from_db()
    assert (item_of(row).status, batch.completion_tokens) == (ItemStatus.PENDING, 0)


@pytest.mark.parametrize(("counts", "attempts"), [(False, 0), (True, 1)])
def test_returned_counts_an_attempt_only_if_it_says_so(
    make_batch: MakeBatch, lease: Lease, counts: bool, attempts: int
) -> None:
    [row] = started(lease, make_batch(1))
    row_writes.write_events(lease, [Returned(row, "Later.", wait_s=60, counts=counts)])
    item = item_of(row)
    assert (item.status, item.reason, item.attempts) == (ItemStatus.PENDING, "Later.", attempts)
    assert item.not_before is not None
    assert item.not_before > timezone.now() + timedelta(seconds=30)
    assert claims.claim_rows(lease, row.batch_id, 9) == []


def test_returned_fails_the_row_after_its_last_attempt(make_batch: MakeBatch, lease: Lease) -> None:
    batch = make_batch(1)
    for _ in range(row_writes.MAX_ATTEMPTS):
        [row] = started(lease, batch)
        row_writes.write_events(lease, [Returned(row, "It failed.", "server_failed", counts=True)])
    item = item_of(row)
    assert (item.status, item.code) == (ItemStatus.FAILED, "server_failed")
    assert item.reason == "It failed. (tried 3 times)"


def test_returned_fails_a_row_at_once_if_it_is_permanent(
    make_batch: MakeBatch, lease: Lease
) -> None:
    [row] = started(lease, make_batch(1))
    row_writes.write_events(lease, [Returned(row, "Too long.", "prompt_too_long", permanent=True)])
    item = item_of(row)
    assert (item.status, item.reason) == (ItemStatus.FAILED, "Too long.")
    assert item.finished is not None


def test_nothing_is_written_under_a_lost_lease(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    batch = make_batch(1)
    leases.release(lease)
    assert leases.acquire(server.pk) is not None
    with pytest.raises(LeaseLost):
        started(lease, batch)
    assert batch.items.get().status == ItemStatus.PENDING


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verdicts=st.lists(st.sampled_from(["accepted", "rejected", "returned"]), max_size=12))
def test_sums_of_the_job_are_those_of_its_finished_rows(
    make_batch: MakeBatch, lease: Lease, verdicts: list[str]
) -> None:
    batch = make_batch(len(verdicts))
    rows = started(lease, batch)
    row_writes.write_events(
        lease,
        [
            Returned(row)
            if verdict == "returned"
            else Finished(row, RowOutcome(Verdict(verdict), usage=Usage(5, 1, row.index)), 1.0)
            for row, verdict in zip(rows, verdicts, strict=True)
        ],
    )
    batch.refresh_from_db()
    statuses = list(batch.items.order_by("index").values_list("status", flat=True))
    assert statuses == [verdict.replace("returned", "pending") for verdict in verdicts]
    finished = len(verdicts) - verdicts.count("returned")
    assert batch.prompt_tokens == 5 * finished
    assert batch.completion_tokens == sum(item.completion_tokens for item in batch.items.all())
