"""Nobody holds the database for long: SQLite lets one write at a time, and all others wait.

What is counted is rows in each transaction, as SQLite itself sees them begin and end; where one
statement makes many rows inside the database, statements.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.batch import services
from apps.batch.handlers import RowOutcome, Verdict
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.store import claims, job_writes, leases, row_events, row_writes
from apps.batch.store.items import INSERT_ROWS
from apps.core.models import ApiKey
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.rows import seed_tables
from apps.generation.services import create_job, delete
from apps.servers.models import Server

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="others lock rows"),
]

ROWS = 5 * INSERT_ROWS
MOST_ROWS = 2 * INSERT_ROWS


@contextmanager
def largest_transaction() -> Iterator[Callable[[], int]]:
    """How many rows the largest transaction of the block has changed, on this connection."""
    connection.ensure_connection()
    native: Any = connection.connection
    assert isinstance(native, sqlite3.Connection)
    last, largest, inside = native.total_changes, 0, False

    def traced(statement: str) -> None:
        """Hears of a statement before it runs: what was changed since the last boundary."""
        nonlocal last, largest, inside
        ends = statement.startswith(("COMMIT", "ROLLBACK")) and " TO " not in statement
        if not inside or ends:  # without a transaction each statement is one
            largest, last = max(largest, native.total_changes - last), native.total_changes
        inside = statement.startswith("BEGIN") or (inside and not ends)

    native.set_trace_callback(traced)
    try:
        yield lambda: max(largest, native.total_changes - last)
    finally:
        native.set_trace_callback(None)


@pytest.fixture
def large(alice: User, server: Server) -> Batch:
    return services.create_batch(
        owner=alice,
        server=server,
        handler="tests.echo",
        spec={},
        inputs=ROWS,
        options=services.BatchOptions(refill=True),
    )


@pytest.mark.parametrize("at_once", [False, True])
def test_the_guard_sees_a_large_one(large: Batch, at_once: bool) -> None:
    with largest_transaction() as largest:
        if at_once:
            Item.objects.filter(batch=large).update(reason="x")
        else:
            with transaction.atomic():
                for start in range(0, ROWS, 1000):
                    part = Item.objects.filter(batch=large, index__gte=start)
                    part.filter(index__lt=start + 1000).update(reason="x")
    assert largest() >= ROWS


@pytest.mark.parametrize("what", ["add", "retry", "delete"])
def test_many_rows_are_changed_in_short_transactions(large: Batch, what: str) -> None:
    if what == "retry":
        large.items.update(status=ItemStatus.FAILED, finished=timezone.now())
    with largest_transaction() as largest:
        match what:
            case "add":
                services.add_rows(large, ROWS)
            case "retry":
                assert services.retry_failed_rows(large) == ROWS
            case "delete":
                services.delete_batch(large)
    assert 0 < largest() <= MOST_ROWS


def test_a_job_is_deleted_in_short_transactions(alice: User, server: Server) -> None:
    recipe = parse({"prompt": "Write about {{ thing }}.", "attributes": {"thing": ["a", "b"]}})
    job = create_job(
        JobRequest(name="Large", rows=ROWS, seed=1, recipe=recipe), owner=alice, server=server
    )
    with largest_transaction() as largest:
        delete(job)
    assert not Job.objects.exists()
    assert not Batch.objects.exists()
    assert 0 < largest() <= MOST_ROWS


def test_seed_rows_are_read_before_the_transaction(
    alice: User, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's begins with the lock: what only reads in it keeps others from writing."""
    inside = []
    load_tables = seed_tables.load_tables

    def noted(*args: Any) -> Any:
        inside.append(connection.in_atomic_block)
        return load_tables(*args)

    monkeypatch.setattr(seed_tables, "load_tables", noted)
    body = {"name": "Job", "rows": 2, "recipe": {"prompt": "Write."}}
    _, token = ApiKey.issue(user=alice, name="tests")
    api = Client(headers={"authorization": f"Bearer {token}"})
    made = api.post("/api/v1/jobs", body, content_type="application/json")
    assert made.status_code == 202
    assert Job.objects.get().version is not None
    assert inside == [False]


def test_rows_are_made_inside_the_database(alice: User, server: Server) -> None:
    """In one transaction with their job: all or nothing."""
    statements = []
    for rows in (10, 20_000):
        with CaptureQueriesContext(connection) as captured:
            services.create_batch(
                owner=alice, server=server, handler="tests.echo", spec={}, inputs=rows
            )
        statements.append([len(captured), sum(len(query["sql"]) for query in captured) // 100])
    assert statements[0] == statements[1]


def test_what_a_pump_writes_at_once_is_short(server: Server, large: Batch) -> None:
    lease = leases.acquire(server.pk)
    assert lease is not None
    large.items.filter(index__lt=2000).update(status=ItemStatus.REJECTED, finished=timezone.now())
    large.items.filter(index__lt=2000, index__gt=500).update(status=ItemStatus.ACCEPTED)
    rows = claims.claim_rows(lease, large.pk, 64)
    outcome = RowOutcome(Verdict.ACCEPTED, output={"text": "word " * 500}, raw="word " * 500)
    with largest_transaction() as largest:
        assert job_writes.enforce_policies(lease) == [large.pk]
        row_writes.write_events(lease, [row_events.Started(row, "m") for row in rows])
        row_writes.write_events(lease, [row_events.Finished(row, outcome, 1.0) for row in rows])
        job_writes.set_status(lease, [large.pk], status=BatchStatus.PAUSED, reason="x")
    assert large.items.filter(status=ItemStatus.ACCEPTED).count() == 1499 + 64
    assert 0 < largest() <= MOST_ROWS
