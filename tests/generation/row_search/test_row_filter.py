"""Rows of a filter, in their order, page by page."""

from datetime import UTC, datetime, timedelta

import pytest

from apps.batch.models import Batch, BatchStatus, Item
from apps.generation.models import Job
from apps.generation.row_search.row_filter import ALL, FILTERS, NEWEST, RowFilter, RowPage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def timed(job: Job) -> Job:
    """Rows 0 to 6 are finished: 3 first, and 5 and 6 at the same microsecond."""
    for second, indices in enumerate([(3,), (0,), (1,), (2,), (4,), (5, 6)]):
        items = Item.objects.filter(batch_id=job.batch_id, index__in=indices)
        items.update(finished=NOON + timedelta(seconds=second, microseconds=1))
    return job


def indices(page: RowPage) -> list[int]:
    return [item.index for item in page.items]


@pytest.mark.parametrize(
    ("query", "status", "name"),
    [
        ({}, BatchStatus.RUNNING, NEWEST),
        ({}, BatchStatus.QUEUED, NEWEST),
        ({}, BatchStatus.DONE, ALL),
        ({"status": "x"}, BatchStatus.PAUSED, ALL),
        ({"status": "failed"}, BatchStatus.RUNNING, "failed"),
    ],
)
def test_the_filter_of_an_address(
    job: Job, query: dict[str, str], status: BatchStatus, name: str
) -> None:
    job.batch.status = status
    found = RowFilter.of(job, query)
    assert (found.name, found.code) == (name, "")
    assert name in FILTERS


def test_a_long_code_is_cut(job: Job) -> None:
    assert RowFilter.of(job, {"code": "x" * 99}).code == "x" * 30


@pytest.mark.parametrize(
    ("name", "code", "found"),
    [
        ("all", "", list(range(10))),
        ("newest", "", [6, 5, 4, 2, 1, 0, 3]),
        ("newest", "length", [5]),
        ("accepted", "", [0, 1, 2, 3, 4]),
        ("unseen", "", [0, 2, 3, 4]),
        ("running", "", [7]),
        ("failed", "stalled", [6]),
        ("failed", "length", []),
    ],
)
def test_rows_in_their_order(timed: Job, name: str, code: str, found: list[int]) -> None:
    Item.objects.filter(batch_id=timed.batch_id, index=1).update(reviewed=True)
    assert [item.index for item in RowFilter(name, code).rows(timed)] == found


@pytest.mark.parametrize("name", ["all", "newest", "accepted", "unseen"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_forwards_are_all_rows_once(timed: Job, name: str, size: int) -> None:
    rows = RowFilter(name)
    page = rows.page(timed, {}, size)
    found = indices(page)
    while page.has_next:
        assert (page.start, page.end) == (len(found) - len(page.items) + 1, len(found))
        page = rows.page(timed, {"after": page.last}, size)
        found += indices(page)
    assert found == [item.index for item in rows.rows(timed)]
    assert page.end == page.total == len(found)


@pytest.mark.parametrize("name", ["all", "newest"])
def test_a_page_backwards_ends_before_its_place(timed: Job, name: str) -> None:
    rows = RowFilter(name)
    first = rows.page(timed, {}, 3)
    second = rows.page(timed, {"after": first.last}, 3)
    assert indices(rows.page(timed, {"before": second.first}, 3)) == indices(first)
    # Fewer than a page before it: the first page is whole.
    start = rows.page(timed, {"before": first.last}, 3)
    assert indices(start) == indices(first)


def test_a_filter_without_rows(job: Job) -> None:
    Batch.objects.update(status=BatchStatus.DONE)
    page = RowFilter("failed", "length").page(job, {"after": "3"}, 5)
    assert (page.items, page.total, page.has_next, page.first, page.last) == ([], 0, False, "", "")
