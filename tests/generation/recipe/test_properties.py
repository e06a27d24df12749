"""Recipes: the same after a way through JSON, and no JSON raises anything but its own error."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.recipe.columns.written import Written
from apps.generation.recipe.library.starters import STARTERS, more_like
from apps.generation.recipe.parse import long_form, parse, to_json
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.recipe import Recipe
from tests.cpu_time import bounded_cpu
from tests.generation.recipe.strategies import JSON, RECIPE_LIKE, recipes
from tests.generation.recipe.test_parse import REVIEWS

EVERY_STARTER = [REVIEWS, *(starter.recipe for starter in STARTERS), more_like(1, ["a", "b"], 9)]


def assert_refused_or_read(data: Any) -> None:
    recipe: Recipe | None = None
    problems: tuple[Problem, ...] = ()
    try:
        recipe = parse(data, rows=10)
    except RecipeError as error:
        problems = error.problems
    assert bool(problems) == (recipe is None)
    for problem in problems:
        assert problem.message.endswith((".", "?")), problem
        assert all(isinstance(step, str | int) for step in problem.place)


@given(recipes())
def test_recipe_survives_json(data: dict[str, Any]) -> None:
    recipe = parse(data)
    stored = json.loads(json.dumps(to_json(recipe)))
    assert parse(stored) == recipe
    assert parse(stored, stored=True) == recipe
    assert to_json(parse(stored)) == stored


@given(recipes())
def test_long_form_means_the_same_columns(data: dict[str, Any]) -> None:
    """The editor shows the answer as a column of its own."""
    recipe = parse(data)
    long = parse(long_form(to_json(recipe)) | {"quotas": {}})
    assert [column.name for column in long.columns[:-1]] == [
        column.name for column in recipe.columns[:-1]
    ]
    assert long.written[-1].prompt == recipe.written[-1].prompt
    assert long.written[-1].answer_schema == recipe.written[-1].answer_schema


@given(recipes())
def test_fields_of_a_recipe_are_names_of_its_columns(data: dict[str, Any]) -> None:
    recipe = parse(data)
    names = {name for column in recipe.columns for name in column.names}
    assert set(recipe.field_names) <= names
    assert sorted(recipe.label_candidates) == sorted(recipe.field_names)
    assert len(set(recipe.field_names)) == len(recipe.field_names)


@given(JSON)
def test_no_json_raises_another_error(data: Any) -> None:
    assert_refused_or_read(data)


@given(RECIPE_LIKE)
def test_no_json_with_the_keys_of_recipes_raises_another_error(data: Any) -> None:
    assert_refused_or_read(data)


@given(
    st.dictionaries(
        st.sampled_from(["columns", "prompt", "schema", "params", "quotas", "attributes"]),
        st.lists(RECIPE_LIKE, max_size=3) | RECIPE_LIKE,
    )
)
def test_no_recipe_of_odd_parts_raises_another_error(data: Any) -> None:
    assert_refused_or_read(data)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in steps if isinstance(value, dict | list) else ():
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += places(inner)
    return found


@given(st.sampled_from(EVERY_STARTER), st.data())
def test_no_change_of_a_good_recipe_raises_another_error(
    recipe: dict[str, Any], data: st.DataObject
) -> None:
    changed = json.loads(json.dumps(recipe))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(changed)))
        container[key] = data.draw(RECIPE_LIKE)
        if not places(changed):
            break
    assert_refused_or_read(changed)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
@pytest.mark.parametrize("key", ["columns", "schema", "attributes", "quotas", "params", "prompt"])
def test_deep_json_is_refused_at_once(key: str, wrap: Any) -> None:
    value: Any = "x"
    for _ in range(50_000):
        value = wrap(value)
    with bounded_cpu(), pytest.raises(RecipeError, match="nested too deeply"):
        parse({**REVIEWS, key: value})


@pytest.mark.parametrize(
    "data",
    [
        {"columns": [{"name": "a", "values": ["x"]}] * 100_000},
        {"prompt": "x", "attributes": {f"a{n}": ["x"] for n in range(100_000)}},
        {"prompt": "x", "checks": [{"kind": "length", "min": 1}] * 100_000},
        {"prompt": "x", "params": {"stop": ["x"] * 100_000}},
        {"prompt": "x", "attributes": {"a": [f"v{n}" for n in range(1_000_000)]}},
        {
            "prompt": "x",
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a", *(f"f{n}" for n in range(100_000))],
            },
        },
        {"columns": [{"name": "s", "kind": "seed", "rows": ["x"] * 100_000}], "prompt": "x"},
    ],
    ids=lambda data: ",".join(data),
)
def test_large_json_is_refused_in_bounded_time(data: dict[str, Any]) -> None:
    with bounded_cpu(), pytest.raises(RecipeError):
        parse(data)


@pytest.mark.parametrize("recipe", EVERY_STARTER)
def test_every_starter_survives_json(recipe: dict[str, Any]) -> None:
    parsed = parse(recipe)
    assert parse(json.loads(json.dumps(to_json(parsed)))) == parsed
    assert all(isinstance(column, Written) for column in parsed.written)
