"""Columns: what each kind draws, the same for the same row; every mistake with its place."""

import re
import uuid
from collections import Counter
from datetime import date
from typing import Any

import pytest

from apps.core.schemas.json_schemas import BadSchema, checked
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.columns.written import Written
from apps.generation.recipe.parse import parse, to_json
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import Recipe
from apps.generation.rows.row_steps import Row, row_steps
from apps.generation.rows.samplers import RowSeed, sample_column

ASK = {"name": "text", "kind": "text", "prompt": "Write."}


def drawn(*columns: dict[str, Any], rows: int = 200, tables: Any = None) -> list[dict[str, Any]]:
    recipe = parse({"columns": [*columns, ASK]})
    found = []
    for index in range(rows):
        values: dict[str, Any] = {}
        for column in recipe.columns:
            if not isinstance(column, Written):
                sample_column(column, RowSeed(index, 7, tables=tables or {}), values)
        found.append(values)
    return found


def test_weights() -> None:
    column = {"name": "c", "kind": "category", "values": ["often", "rare"], "weights": [9, 1]}
    counts = Counter(row["c"] for row in drawn(column, rows=2000))
    assert 150 < counts["rare"] < 260
    inline = {
        "name": "c",
        "kind": "category",
        "values": [{"value": "often", "weight": 9}, {"value": "rare"}],
    }
    assert Counter(row["c"] for row in drawn(inline, rows=2000)) == counts


def test_a_weight_of_nothing_never_comes() -> None:
    column = {"name": "c", "kind": "category", "values": ["a", "b", "c"], "weights": [1, 0, 1]}
    assert {row["c"] for row in drawn(column)} == {"a", "c"}


def test_values_that_depend_on_another_column() -> None:
    rows = drawn(
        {"name": "animal", "values": ["cat", "dog"]},
        {
            "name": "sound",
            "depends_on": "animal",
            "values": {"cat": ["meow", "purr"], "dog": ["woof"]},
        },
    )
    assert {(row["animal"], row["sound"]) for row in rows} == {
        ("cat", "meow"),
        ("cat", "purr"),
        ("dog", "woof"),
    }


def test_numbers() -> None:
    whole = [row["n"] for row in drawn({"name": "n", "kind": "number", "min": 1, "max": 5})]
    assert set(whole) == {1, 2, 3, 4, 5}
    assert all(isinstance(value, int) for value in whole)
    price = {"name": "n", "kind": "number", "min": 1, "max": 2, "decimals": 2}
    prices = [row["n"] for row in drawn(price)]
    assert all(1 <= value <= 2 and round(value, 2) == value for value in prices)
    assert len(set(prices)) > 50
    age = {"name": "n", "kind": "number", "min": 18, "max": 90, "mean": 40, "deviation": 10}
    ages = [row["n"] for row in drawn(age, rows=1000)]
    assert 18 <= min(ages) < 25
    assert 38 < sum(ages) / len(ages) < 42


def test_dates() -> None:
    day = {"name": "d", "kind": "date", "from": "2026-02-27", "to": "2026-03-01"}
    assert {row["d"] for row in drawn(day)} == {"2026-02-27", "2026-02-28", "2026-03-01"}
    moments = [row["d"] for row in drawn(day | {"time": True})]
    assert all(re.fullmatch(r"2026-0[23]-\d\dT\d\d:\d\d\+00:00", moment) for moment in moments)
    assert date.fromisoformat(moments[0][:10])


def test_uuids() -> None:
    rows = [row["u"] for row in drawn({"name": "u", "kind": "uuid"})]
    assert len(set(rows)) == 200
    assert all(uuid.UUID(value).version == 4 for value in rows)


def test_expressions() -> None:
    rows = drawn(
        {"name": "n", "kind": "number", "min": 1, "max": 9},
        {"name": "double", "kind": "expression", "expression": "2 * n + 1"},
        {"name": "size", "kind": "expression", "expression": "'large' if n > 5 else 'small'"},
    )
    assert all(row["double"] == 2 * row["n"] + 1 for row in rows)
    assert all((row["size"] == "large") == (row["n"] > 5) for row in rows)


SEEDS = Table([{"text": f"Text {n}", "label": "ab"[n % 2]} for n in range(10)])
SEED = {"name": "example", "kind": "seed", "rows": [{"text": "x", "label": "y"}]}


def test_seed_rows_walked_and_sampled() -> None:
    walked = drawn(SEED | {"order": "walk"}, rows=20, tables={"example": SEEDS})
    assert [row["example_text"] for row in walked] == [f"Text {n % 10}" for n in range(20)]
    sampled = drawn(SEED, tables={"example": SEEDS})
    assert len({row["example_text"] for row in sampled}) == 10


def test_several_examples_are_different_rows() -> None:
    rows = drawn(SEED | {"count": 3, "template": "- {{ text }}"}, tables={"example": SEEDS})
    for row in rows:
        lines = row["example"].splitlines()
        assert len(set(lines)) == 3
        assert lines[0].startswith("- Text ")
    assert len({row["example"] for row in rows}) > 100
    many = drawn(SEED | {"count": 40}, rows=3, tables={"example": SEEDS})
    assert many[0]["example"].count("text:") == 10


def test_seed_rows_of_the_same_class() -> None:
    rows = drawn(
        {"name": "label", "values": ["a", "b"]},
        SEED | {"match": "label"},
        tables={"example": SEEDS},
    )
    assert all(row["example_label"] == row["label"] for row in rows)
    with pytest.raises(RecipeError, match="No seed row of “example” has label = “c”"):
        drawn(
            {"name": "label", "values": ["c"]},
            SEED | {"match": "label"},
            tables={"example": SEEDS},
        )


def test_replacement_row_keeps_quota_and_seed_row_and_samples_the_rest() -> None:
    recipe = parse(
        {
            "columns": [
                {"name": "label", "values": ["a", "b"]},
                {"name": "topic", "values": [str(n) for n in range(50)]},
                SEED | {"order": "walk"},
                ASK,
            ],
            "quotas": {"label": {"a": 10, "b": 10}},
        },
        rows=20,
    )

    def row(row_seed: RowSeed) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for column in recipe.columns[:3]:
            sample_column(column, row_seed, values)
        return values

    tables = {"example": SEEDS}
    first = [row(RowSeed(index, 7, tables=tables)) for index in range(20)]
    again = [row(RowSeed(100 + index, 7, index, tables)) for index in range(20)]
    for name in ("label", "example_text"):
        assert [values[name] for values in first] == [values[name] for values in again]
    assert [values["topic"] for values in first] != [values["topic"] for values in again]


LONG: dict[str, Any] = {
    "system": "You write data.",
    "columns": [
        {"name": "label", "kind": "category", "values": ["a", "b"], "weights": [1, 2]},
        {"name": "who", "kind": "persona", "values": ["a nurse", "a farmer"], "about": "people"},
        {"name": "stars", "kind": "number", "min": 1, "max": 5},
        {"name": "day", "kind": "date", "from": "2026-01-01", "to": "2026-12-31", "keep": False},
        {"name": "id", "kind": "uuid"},
        {"name": "example", "kind": "seed", "rows": [{"text": "A", "label": "a"}], "count": 1},
        {"name": "bad", "kind": "expression", "expression": "stars < 3"},
        {
            "name": "review",
            "kind": "structured",
            "prompt": "{{ who }} gives {{ stars }} stars on {{ day }}, like {{ example_text }}.",
            "schema": {
                "type": "object",
                "required": ["title"],
                "properties": {"title": {"type": "string", "maxLength": 80}},
            },
            "checks": [{"kind": "length", "field": "title", "min": 3}],
            "candidates": 3,
        },
        {
            "name": "reply",
            "kind": "text",
            "prompt": "Answer “{{ title }}”.",
            "condition": "bad",
            "params": {"temperature": 0.2},
        },
        {
            "name": "judge",
            "kind": "judge",
            "criteria": [{"name": "quality", "description": "How good is it?", "at_least": 3}],
        },
    ],
    "quotas": {"label": {"a": 5}},
    "params": {"temperature": 0.9, "min_p": 0.05, "max_tokens": 200},
}


def test_what_is_stored_is_read_again_as_it_was() -> None:
    recipe = parse(LONG, rows=10)
    assert parse(to_json(recipe)) == recipe
    assert to_json(parse(to_json(recipe))) == to_json(recipe)


def test_the_fields_of_a_row() -> None:
    recipe = parse(LONG)
    assert recipe.field_names == [
        *("label", "who", "stars", "id", "example_text", "example_label", "bad", "title"),
        *("reply", "judge_reason", "quality"),
    ]
    assert recipe.label_candidates[:2] == ["label", "who"]


@pytest.mark.parametrize(
    ("column", "place", "sentence"),
    [
        ({"name": "a b"}, (), "not a valid column name"),
        ({}, (), "needs a name"),
        ({"name": "a", "kind": "magic"}, ("kind",), "Unknown column type “magic”"),
        ({"name": "a", "values": ["x"], "colour": 1}, ("colour",), "Unknown key"),
        ({"name": "a", "values": []}, (), "at least one value"),
        ({"name": "a", "values": ["x", None]}, (), "empty or not a string"),
        ({"name": "a", "values": ["x"], "weights": [1, 2]}, (), "as many weights"),
        ({"name": "a", "values": ["x"], "weights": [0]}, (), "All weights"),
        ({"name": "a", "values": ["x"], "weights": [-1]}, (), "not a number of 0 or more"),
        ({"name": "a", "values": ["x", "x"], "weights": [1, 2]}, (), "twice"),
        ({"name": "a", "values": {"x": ["y"]}}, (), "depends_on"),
        ({"name": "a", "values": ["x"], "depends_on": "z"}, ("depends_on",), "No column “z”"),
        ({"name": "a", "values": ["x"], "depends_on": "before"}, (), "its values are an object"),
        ({"name": "a", "values": ["x"], "keep": "no"}, ("keep",), "true or false"),
        ({"name": "a", "values": ["x"], "condition": "z > 1"}, ("condition",), "no column “z”"),
        ({"name": "a", "kind": "number", "min": 5, "max": 1}, ("min",), "larger"),
        ({"name": "a", "kind": "number", "min": "x", "max": 1}, ("min",), "a number"),
        ({"name": "a", "kind": "number", "max": 1}, ("min",), "a number"),
        ({"name": "a", "kind": "number", "min": 0.5, "max": 1}, ("decimals",), "integers"),
        ({"name": "a", "kind": "number", "min": 1, "max": 10**30}, ("max",), "a number"),
        ({"name": "a", "kind": "date", "from": "soon", "to": "2026-01-01"}, ("from",), "a date"),
        ({"name": "a", "kind": "date", "from": "2026-02-01", "to": "2026-01-01"}, ("from",), "aft"),
        ({"name": "a", "kind": "seed"}, (), "Choose a source for the seed rows"),
        ({"name": "a", "kind": "seed", "rows": []}, (), "No seed rows"),
        ({"name": "a", "kind": "seed", "text": "x", "format": "pdf"}, (), "has a format"),
        (
            {"name": "a", "kind": "seed", "text": "{", "format": "jsonl"},
            (),
            "Line 1 is not valid JSON",
        ),
        ({"name": "a", "kind": "seed", "dataset": "x"}, ("dataset",), "Must be an integer"),
        ({"name": "a", "kind": "seed", "dataset": 1, "count": 0}, ("count",), "from 1"),
        ({"name": "a", "kind": "seed", "dataset": 1, "order": "up"}, ("order",), "sample"),
        ({"name": "a", "kind": "seed", "dataset": 1, "template": "{{ x }}"}, ("template",), "“x”"),
        ({"name": "a", "kind": "expression", "expression": "2 *"}, ("expression",), "Line 1"),
        ({"name": "a", "kind": "expression", "expression": ""}, ("expression",), "empty"),
        ({"name": "a", "kind": "expression", "expression": "a"}, ("expression",), "no column “a”"),
        ({"name": "a", "kind": "text"}, ("prompt",), "Enter a prompt"),
        ({"name": "a", "kind": "text", "prompt": "x\n{{ y }}"}, ("prompt",), "Line 2"),
        ({"name": "a", "kind": "text", "prompt": "x", "params": {"n": 1}}, ("params", "n"), "no"),
        ({"name": "a", "kind": "text", "prompt": "x", "candidates": 99}, ("candidates",), "1 to"),
        (
            {"name": "a", "kind": "text", "prompt": "x", "checks": [{"kind": "length"}]},
            ("checks", 0),
            "minimum or a maximum",
        ),
        (
            {"name": "a", "kind": "text", "prompt": "x", "checks": [{"kind": "matches"}]},
            ("checks", 0),
            "Enter a pattern",
        ),
        ({"name": "a", "kind": "structured", "prompt": "x"}, ("schema",), "at least one field"),
        (
            {"name": "a", "kind": "structured", "prompt": "x", "schema": {"type": "array"}},
            ("schema",),
            "Start the schema",
        ),
        ({"name": "a", "kind": "judge", "criteria": []}, ("criteria",), "1 to 10"),
        ({"name": "a", "kind": "judge", "criteria": [{"name": "q q"}]}, ("criteria", 0), "name"),
        (
            {"name": "a", "kind": "judge", "criteria": [{"name": "q", "max": 1}]},
            ("criteria", 0, "max"),
            "from 2",
        ),
        ({"name": "before", "values": ["x"]}, (), "Two columns are named “before”"),
    ],
)
def test_parse_column_says_what_is_wrong_and_where(
    column: dict[str, Any], place: Any, sentence: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        parse({"columns": [{"name": "before", "values": ["x", "y"]}, column, ASK]})
    assert any(
        problem.place == ("columns", 1, *place) and sentence in problem.message
        for problem in caught.value.problems
    ), caught.value.problems


def test_a_later_mistake_is_not_blamed_for_an_earlier_one() -> None:
    with pytest.raises(RecipeError) as caught:
        parse({"columns": [{"name": "a", "values": []}], "prompt": "{{ a }}"})
    assert [problem.place for problem in caught.value.problems] == [("columns", 0)]


@pytest.mark.parametrize(
    ("quotas", "sentence"),
    [
        ({"sound": {"woof": 1}}, "depends on"),
        ({"stars": {"1": 1}}, "No category column"),
        ({"text": {"1": 1}}, "No category column"),
    ],
)
def test_quotas_refuse_columns_and_rows_that_do_not_fit(
    quotas: dict[str, Any], sentence: str
) -> None:
    columns = [
        {"name": "animal", "values": ["dog"]},
        {"name": "sound", "depends_on": "animal", "values": {"dog": ["woof"]}},
        {"name": "stars", "kind": "number", "min": 1, "max": 5},
        ASK,
    ]
    with pytest.raises(RecipeError, match=sentence):
        parse({"columns": columns, "quotas": quotas})


def test_a_recipe_must_ask_the_model_something() -> None:
    with pytest.raises(RecipeError, match="Enter a prompt"):
        parse({"columns": [{"name": "u", "kind": "uuid"}]})


def _sized(**branches: list[str]) -> dict[str, Any]:
    return {
        "columns": [
            {"name": "kind", "kind": "category", "values": ["Y", "n"]},
            {"name": "size", "kind": "category", "depends_on": "kind", "values": branches},
            {"name": "text", "kind": "text", "prompt": "{{ kind }} {{ size }}"},
        ]
    }


def test_each_value_of_the_column_it_depends_on_has_values() -> None:
    with pytest.raises(RecipeError) as caught:
        parse(_sized(y=["big"], n=["small"]))
    (problem,) = caught.value.problems
    assert problem.place == ("columns", 1, "values")
    assert problem.message == "No values for “Y” of “kind”. “y” is not a value of “kind”."
    parse(_sized(Y=["big"], n=["small"]))


def test_a_stored_recipe_is_read_whatever_it_says_and_a_row_without_values_says_so() -> None:
    recipe = parse(_sized(y=["big"], n=["small"]), stored=True)
    rows = [next_row(recipe, at) for at in range(20)]
    bad = [row for row in rows if row is not None]
    assert bad
    assert {row.code for row in bad} == {"bad_prompt"}
    assert "“size” has no values for “Y” of “kind”." in bad[0].reason


def next_row(recipe: Recipe, index: int) -> Row | None:
    """The row if it ends before the model is asked."""
    try:
        next(row_steps(recipe, RowSeed(index, 1)))
    except StopIteration as end:
        row: Row = end.value
        return row
    return None


@pytest.mark.parametrize(
    "limits",
    [
        {"type": "integer", "minimum": 5, "maximum": 1},
        {"type": "number", "exclusiveMinimum": 1, "maximum": 1},
        {"type": "string", "minLength": 5, "maxLength": 4},
        {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 2},
        {"type": "array", "items": {"type": "integer", "minimum": 2, "maximum": 1}},
    ],
)
def test_limits_that_exclude_each_other_are_refused(limits: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"stars": limits}, "required": ["stars"]}
    with pytest.raises(RecipeError, match="no value fits") as caught:
        parse({"prompt": "Write.", "schema": schema})
    assert caught.value.problems[0].place == ("schema",)
    with pytest.raises(BadSchema, match="no value fits"):
        checked(schema)
    columns = [{"name": "row", "kind": "structured", "prompt": "Write.", "schema": schema}]
    with pytest.raises(RecipeError) as caught:
        parse({"attributes": {"a": ["x"]}, "columns": columns})
    assert caught.value.problems[0].place == ("columns", 0, "schema")
