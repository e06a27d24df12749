"""Values of a row that no model writes: repeatable, within their limits, in their order."""

import uuid
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from apps.generation.rows.samplers import RowSeed, random_bits, sample_column

SEEDS = st.integers(0, 2**31 - 1)
PLACES = st.integers(0, 100_000)
TABLES = {"like": Table([{"text": "A", "label": "x"}, {"text": "B", "label": "y"}])}


def sample(column: dict[str, Any], row_seed: RowSeed, **values: Any) -> Any:
    """Sample a column named `v`, or of another name; return its value."""
    column = {"name": "v", **column}
    ask = {"name": "text", "kind": "text", "prompt": "Write."}
    earlier = [{"name": name, "values": ["x", "y", "z"]} for name in values]
    recipe = parse({"columns": [*earlier, column, ask]})
    sample_column(recipe.columns[len(earlier)], row_seed, values)
    return values[column["name"]]


@given(SEEDS, PLACES, st.text(max_size=10))
def test_random_bits_are_64_and_repeatable(seed: int, index: int, what: str) -> None:
    bits = random_bits(seed, index, what)
    assert 0 <= bits < 2**64
    assert bits == random_bits(seed, index, what)
    assert bits != random_bits(seed, index + 1, what)


def test_random_bits_are_those_of_earlier_versions() -> None:
    assert random_bits(7, 0, "text") == 2124615109867801050


@given(SEEDS, PLACES, st.integers(-1000, 1000), st.integers(0, 50), st.integers(0, 3))
def test_a_number_is_within_its_limits(
    seed: int, index: int, smallest: int, span: int, decimals: int
) -> None:
    column = {"kind": "number", "min": smallest, "max": smallest + span, "decimals": decimals}
    value = sample(column, RowSeed(index, seed))
    assert smallest <= value <= smallest + span
    assert isinstance(value, float if decimals else int)
    assert round(value, decimals) == value


@given(SEEDS, PLACES)
def test_a_normal_number_is_within_its_limits(seed: int, index: int) -> None:
    column = {"kind": "number", "min": 0, "max": 10, "mean": 9, "deviation": 20}
    assert 0 <= sample(column, RowSeed(index, seed)) <= 10


@given(SEEDS, PLACES, st.booleans())
def test_a_date_is_within_its_limits(seed: int, index: int, time: bool) -> None:
    column = {"kind": "date", "from": "2024-02-28", "to": "2024-03-01", "time": time}
    value = sample(column, RowSeed(index, seed))
    assert "2024-02-28" <= value[:10] <= "2024-03-01"
    assert ("T" in value) is time
    datetime.fromisoformat(value)


@given(SEEDS, PLACES)
def test_an_identifier_is_a_uuid_4(seed: int, index: int) -> None:
    assert uuid.UUID(sample({"kind": "uuid"}, RowSeed(index, seed))).version == 4


@given(SEEDS, st.integers(1, 30), st.integers(0, 30))
def test_quotas_are_exact_for_every_seed(seed: int, first: int, second: int) -> None:
    rows = first + second
    columns = [{"name": "v", "values": ["a", "b"]}, {"name": "t", "kind": "text", "prompt": "W."}]
    recipe = parse({"columns": columns, "quotas": {"v": {"a": first, "b": second}}}, rows=rows)
    found = []
    for index in range(rows):
        values: dict[str, Any] = {}
        sample_column(recipe.columns[0], RowSeed(index, seed), values)
        found.append(values["v"])
    assert (found.count("a"), found.count("b")) == (first, second)


def test_a_replacement_has_the_place_of_its_row() -> None:
    assert RowSeed(8, 1).place == 8
    assert RowSeed(8, 1, replaces=2).place == 2
    walk = {"name": "like", "kind": "seed", "rows": ["A", "B"], "order": "walk"}
    assert sample(walk, RowSeed(8, 1, replaces=3, tables=TABLES)) == "B"


@pytest.mark.parametrize(("count", "found"), [(1, ["A", "B", "A"]), (2, ["A\nB"] * 3)])
def test_seed_rows_in_order_begin_again_at_the_end(count: int, found: list[str]) -> None:
    walk = {"name": "like", "kind": "seed", "rows": ["A"], "order": "walk", "count": count}
    assert [sample(walk, RowSeed(index, 1, tables=TABLES)) for index in range(3)] == found


def test_seed_rows_that_match_a_column() -> None:
    seed = {"name": "like", "kind": "seed", "rows": [{"text": "A", "label": "x"}], "match": "c"}
    row_seed = RowSeed(0, 1, tables=TABLES)
    template = {"template": "{{ label }}: {{ text }}"}
    assert sample(seed | template, row_seed, c="y") == "y: B"
    assert sample(seed, row_seed, c="y") == "text: B; label: y"
    with pytest.raises(RecipeError, match=r"No seed row of “like” has label = “z”\."):
        sample(seed, row_seed, c="z")


def test_seed_rows_that_are_gone() -> None:
    seed = {"name": "like", "kind": "seed", "rows": ["A"]}
    with pytest.raises(RecipeError, match="The seed rows of “like” no longer exist"):
        sample(seed, RowSeed(0, 1))


def test_a_column_of_the_model_is_not_sampled() -> None:
    with pytest.raises(TypeError, match="is not sampled"):
        sample_column(parse({"prompt": "Write."}).columns[0], RowSeed(0, 1), {})
