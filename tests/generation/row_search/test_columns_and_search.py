"""Rows by the values of their columns, by text and by score."""

import pytest

from apps.batch.models import Item, ItemStatus
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.row_search.columns import FilterColumn, filter_columns
from apps.generation.row_search.row_filter import RowFilter, sorts
from tests.generation.conftest import JUDGED, finish


def found(job: Job, **query: str) -> list[int]:
    return [item.index for item in RowFilter.of(job, query).rows(job)]


def test_columns_with_few_values_and_scores_can_be_chosen() -> None:
    assert filter_columns(parse(JUDGED)) == [
        FilterColumn("topic", ("billing", "crash")),
        FilterColumn("quality", ("1", "2", "3", "4", "5"), is_score=True),
    ]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ({"is.topic": "billing"}, [0, 2]),
        ({"is.topic": "crash"}, [1, 3]),
        ({"is.topic": "x"}, [0, 1, 2, 3]),  # no value of the column: not filtered
        ({"is.quality": "3"}, [0, 1]),
        ({"is.quality": "3", "is.topic": "crash"}, [1]),
        ({"q": "überschuss"}, [0]),
        ({"q": "MINE"}, [2]),
        ({"q": "text"}, [2]),  # not the name of the column
        ({"q": '"billing"'}, [1]),
        ({"q": "quality"}, []),
        ({"q": "100%"}, []),
    ],
)
def test_rows_that_are_found(judged: Job, query: dict[str, str], rows: list[int]) -> None:
    assert found(judged, **query) == rows


def test_an_edited_row_is_found_by_what_it_says_now(judged: Job) -> None:
    item = Item.objects.get(batch_id=judged.batch_id, index=3)
    item.edited = {"topic": "billing", "text": "Changed.", "quality": 2}
    item.save(update_fields=["edited"])
    assert found(judged, q="nothing") == []
    assert found(judged, q="changed") == [3]
    assert found(judged, **{"is.quality": "2"}) == [1, 3]


def test_an_unreadable_answer_is_found(judged: Job) -> None:
    finish(judged, 3, ItemStatus.REJECTED, output=None, raw="Broken JSON")
    assert found(judged, q="broken") == [3]


@pytest.mark.parametrize(
    ("sort", "rows"),
    [
        ("low:quality", [1, 0, 2, 3]),
        ("high:quality", [2, 0, 1, 3]),
        ("number", [0, 1, 2, 3]),
        ("newest", [3, 2, 1, 0]),
        ("low:x", [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_order_page_by_page(judged: Job, sort: str, rows: list[int], size: int) -> None:
    chosen = RowFilter.of(judged, {"sort": sort})
    page = chosen.page(judged, {}, size)
    seen = [item.index for item in page.items]
    while page.has_next:
        page = chosen.page(judged, {"after": page.last}, size)
        seen += [item.index for item in page.items]
    assert seen == rows
    back = chosen.page(judged, {"before": page.first}, size)
    assert back.total == 4


def test_the_address_of_a_filter_is_read_again(judged: Job) -> None:
    query = {"status": "accepted", "q": "a b", "is.topic": "crash", "sort": "low:quality"}
    chosen = RowFilter.of(judged, query)
    assert chosen.query() == "status=accepted&q=a+b&sort=low%3Aquality&is.topic=crash"
    assert chosen.query(q="", status="all") == "status=all&sort=low%3Aquality&is.topic=crash"
    assert chosen.is_narrow
    assert not RowFilter("all").is_narrow


def test_orders_are_named(judged: Job) -> None:
    assert sorts(judged.spec.recipe) == {
        "newest": "Newest first",
        "number": "Row number",
        "low:quality": "Lowest quality first",
        "high:quality": "Highest quality first",
    }
