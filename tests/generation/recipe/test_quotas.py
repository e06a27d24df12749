"""Quotas of a recipe: they fit its columns and the rows of the job, or are refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from tests.generation.recipe.strategies import JSON

VALUES = ["red", "green", "blue"]
RECIPE: dict[str, Any] = {"attributes": {"colour": VALUES}, "prompt": "A {{ colour }} kettle."}
ROWS = 10


@given(st.dictionaries(st.sampled_from(VALUES), st.integers(0, ROWS)))
def test_quotas_are_taken_if_they_fit_the_rows(wanted: dict[str, int]) -> None:
    total = sum(wanted.values())
    fits = total == ROWS or (total < ROWS and len(wanted) < len(VALUES))
    data = RECIPE | {"quotas": {"colour": wanted}}
    if fits:
        (column,) = parse(data, rows=ROWS).categories
        assert column.quotas == (wanted if total else {})
    else:
        with pytest.raises(RecipeError, match=f"add up to {total} rows"):
            parse(data, rows=ROWS)


@given(st.dictionaries(st.sampled_from(["colour", "size"]), JSON) | JSON)
def test_quotas_of_any_json_are_whole_numbers_of_known_values_or_refused(data: Any) -> None:
    try:
        recipe = parse(RECIPE | {"quotas": data}, rows=ROWS)
    except RecipeError:
        return
    for column in recipe.categories:
        assert column.quotas.keys() <= set(VALUES)
        assert all(type(count) is int and count >= 0 for count in column.quotas.values())
