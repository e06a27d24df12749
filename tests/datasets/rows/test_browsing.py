"""Pages of rows by cursor: each row once, in order, both ways."""

from itertools import pairwise

import pytest
from django.contrib.auth.models import User

from apps.datasets.models import Dataset
from apps.datasets.rows.browsing import Filters, RowsPage, page
from apps.datasets.rows.reports import Issue
from tests.datasets import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def dataset(alice: User) -> Dataset:
    rows = [(f"text {n % 9}", f"label {n % 3}", "test" if n % 4 == 0 else "") for n in range(23)]
    return factories.create(alice, rows)


def walk(dataset: Dataset, filters: Filters, limit: int) -> list[RowsPage]:
    pages = [page(dataset, filters, limit=limit)]
    while pages[-1].next:
        pages.append(page(dataset, filters, after=pages[-1].next, limit=limit))
    return pages


def indices(pages: list[RowsPage]) -> list[int]:
    return [row.index for found in pages for row in found.rows]


FILTERS = [
    Filters(),
    Filters(label="label 1"),
    Filters(split="test"),
    Filters(search="TEXT 3"),
    Filters(issue=Issue.DUPLICATE),
    Filters(label="label 2", issue=Issue.DUPLICATE),
]


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("limit", [1, 4, 50])
def test_page_shows_every_row_once(dataset: Dataset, filters: Filters, limit: int) -> None:
    whole = page(dataset, filters, limit=100)
    pages = walk(dataset, filters, limit)
    assert indices(pages) == [row.index for row in whole.rows]
    assert whole.rows
    assert not pages[0].previous
    assert all(found.previous for found in pages[1:])


@pytest.mark.parametrize("filters", FILTERS)
def test_page_before_is_the_one_that_came_before(dataset: Dataset, filters: Filters) -> None:
    pages = walk(dataset, filters, 3)
    for earlier, later in pairwise(pages):
        assert page(dataset, filters, before=later.previous, limit=3).rows == earlier.rows


@pytest.mark.parametrize("cursor", ["x", "1.2.3", "", "9" * 40, "-", "5.x", "²"])
def test_a_cursor_without_meaning_gives_the_first_page(dataset: Dataset, cursor: str) -> None:
    first = page(dataset, Filters(), limit=5)
    assert page(dataset, Filters(), after=cursor, limit=5) == first
    assert page(dataset, Filters(), before=cursor, limit=5) == first


def test_a_cursor_beyond_the_end_gives_the_first_page(dataset: Dataset) -> None:
    assert page(dataset, Filters(), after="1000", limit=5).rows[0].index == 0


@pytest.mark.parametrize("filters", [*FILTERS, Filters(label="", split="", search="ä&?=")])
def test_filters_survive_their_json(filters: Filters) -> None:
    assert Filters.from_json(filters.as_json()) == filters
    assert filters.is_set == (filters != Filters())


def test_filters_query_names_what_is_set() -> None:
    assert Filters().query == ""
    assert Filters(label="", split="").query == "unlabelled=1&split=none"
    query = Filters(label="a b", issue=Issue.LEAK, search="x").query
    assert query == "label=a+b&issue=leak&q=x"
