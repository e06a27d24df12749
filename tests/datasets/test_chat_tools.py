"""Searching in datasets from a conversation."""

import pytest
from django.contrib.auth.models import User

from apps.core.tools import ToolError
from apps.datasets.chat_tools import search_datasets
from apps.datasets.models import Dataset
from tests.datasets import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kettles(alice: User) -> Dataset:
    rows = ((f"Kettle {n}\nwhistles.", "good" if n % 2 else "bad") for n in range(30))
    return factories.create(alice, rows, "Kettles")


async def test_search_datasets_finds_rows_by_words_and_label(alice: User, kettles: Dataset) -> None:
    said = await search_datasets(alice, {"words": "kettle 17"})
    assert said == "- Kettles, row 18 [good]: Kettle 17 whistles."
    labelled = await search_datasets(alice, {"label": "Bad", "dataset": "kettles"})
    assert labelled.count("[bad]") == 15


async def test_many_rows_are_cut(alice: User, kettles: Dataset) -> None:
    said = await search_datasets(alice, {})
    assert said.count("- Kettles") == 20
    assert said.endswith("There are more: these are the first 20.")


async def test_dataset_tool_hides_datasets_of_others(bob: User, kettles: Dataset) -> None:
    assert "This person has no datasets." in await search_datasets(bob, {"words": "kettle"})
    with pytest.raises(ToolError, match="no datasets"):
        await search_datasets(bob, {"dataset": "Kettles"})


async def test_nothing_found_says_what_there_is(alice: User, kettles: Dataset) -> None:
    assert "“Kettles” (30 rows)" in await search_datasets(alice, {"words": "toaster"})
