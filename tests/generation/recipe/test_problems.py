"""Problems of a recipe: their places, and the sentences of several."""

from typing import Any

import pytest

from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import Problem, RecipeError

COLUMN = {"name": "before", "values": ["x"]}


def problems_of(data: Any) -> dict[str, str]:
    with pytest.raises(RecipeError) as caught:
        parse(data)
    return {".".join(map(str, problem.place)): problem.message for problem in caught.value.problems}


def test_a_problem_is_seen_from_further_out() -> None:
    problem = Problem(("max",), "Wrong.").at("criteria", 0).at("columns", 2)
    assert problem.place == ("columns", 2, "criteria", 0, "max")
    assert Problem((), "Wrong.").at("", "a").place == ("a",)


def test_an_error_says_all_its_sentences() -> None:
    error = RecipeError([Problem(("a",), "One."), Problem(("b",), "Two.")])
    assert str(error) == "One. Two."
    assert RecipeError.one("One.").problems == (Problem((), "One."),)


def test_places_are_those_of_the_json() -> None:
    assert set(
        problems_of(
            {
                "system": 1,
                "colour": 2,
                "attributes": {"ok": ["x"], "bad": []},
                "columns": [
                    {"name": "n", "kind": "number", "min": "x", "max": 2},
                    {"name": "j", "kind": "judge", "criteria": [{"name": "q", "max": 1}]},
                    {"name": "t", "kind": "text", "prompt": "x", "params": {"top_p": 2}},
                    {"name": "c", "kind": "text", "prompt": "x", "checks": [{"kind": "nothing"}]},
                    {"name": "s", "kind": "seed", "rows": "x"},
                ],
                "prompt": "Write.",
                "checks": [{"kind": "length", "min": "x"}],
                "candidates": 99,
                "params": {"stop": []},
            }
        )
    ) == {
        *("system", "colour", "attributes.bad", "columns.0.min", "columns.1.criteria.0.max"),
        *("columns.2.params.top_p", "columns.3.checks.0", "columns.4", "checks.0"),
        *("candidates", "params.stop"),
    }


def test_two_problems_of_one_column_are_both_reported() -> None:
    column = {"name": "n", "kind": "number", "min": "x", "max": "y"}
    assert problems_of({"columns": [column], "prompt": "x"}) == {
        "columns.0.min": "Must be a number.",
        "columns.0.max": "Must be a number.",
    }


@pytest.mark.parametrize("data", [None, [], "x", 5, True])
def test_a_recipe_is_an_object(data: Any) -> None:
    assert problems_of(data) == {"": "A recipe must be a JSON object."}


def test_columns_are_a_list_of_objects() -> None:
    assert problems_of({"columns": {"a": 1}, "prompt": "x"}) == {
        "columns": "Columns must be a list."
    }
    assert list(problems_of({"columns": [5], "prompt": "x"})) == ["columns.0"]


def test_empty_parts_are_left_out() -> None:
    nothing: dict[str, Any] = {
        "system": None,
        "attributes": None,
        "columns": None,
        "schema": None,
        "quotas": None,
        "params": None,
        "checks": None,
    }
    recipe = parse({"prompt": "Write.", **nothing})
    assert recipe == parse({"prompt": "Write."})


def test_a_template_may_name_earlier_columns_only() -> None:
    text = {"name": "t", "kind": "text", "prompt": "{{ before }} {{ t }}"}
    assert problems_of({"columns": [COLUMN, text]}) == {
        "columns.1.prompt": "Line 1: no column “t”. Available columns: before."
    }


def test_names_are_not_checked_behind_a_column_that_cannot_be_read() -> None:
    broken = {"name": "broken", "values": []}
    text = {"name": "t", "kind": "text", "prompt": "{{ broken }} {{ anything }}"}
    assert list(problems_of({"columns": [broken, text]})) == ["columns.0"]


def test_the_answer_may_repeat_a_category_but_no_other_column() -> None:
    schema = {"type": "object", "properties": {"before": {"type": "string"}}}
    assert parse({"columns": [COLUMN], "prompt": "x", "schema": schema}).field_names == ["before"]
    number = {"name": "before", "kind": "number", "min": 1, "max": 2}
    assert problems_of({"columns": [number], "prompt": "x", "schema": schema}) == {
        "schema": "Its “before” is the name of an earlier column: rename one of them."
    }


@pytest.mark.parametrize("count", [51, 1_000])
def test_too_many_columns(count: int) -> None:
    columns = [{"name": f"c{at}", "values": ["x"]} for at in range(count)]
    assert problems_of({"columns": columns, "prompt": "x"}) == {
        "columns": "Up to 50 columns are allowed."
    }


def test_attributes_count_as_columns() -> None:
    attributes = {f"a{at}": ["x"] for at in range(30)}
    columns = [{"name": f"c{at}", "values": ["x"]} for at in range(30)]
    assert "columns" in problems_of({"attributes": attributes, "columns": columns, "prompt": "x"})


def test_too_many_requests_per_row() -> None:
    columns = [{"name": f"c{at}", "kind": "text", "prompt": "x"} for at in range(11)]
    assert problems_of({"columns": columns}) == {
        "columns": "Up to 10 columns can be written by the model."
    }


@pytest.mark.parametrize("key", ["weights", "depends_on"])
def test_a_persona_has_no(key: str) -> None:
    persona = {"name": "p", "kind": "persona", "values": ["x"], key: None}
    assert problems_of({"columns": [persona], "prompt": "x"}) == {
        f"columns.0.{key}": "Unknown key for a persona column."
    }


@pytest.mark.parametrize("key", ["quotas", "given", "smallest", "row_schema", "start"])
def test_names_of_the_code_are_no_keys(key: str) -> None:
    assert list(problems_of({"columns": [{**COLUMN, key: 1}], "prompt": "x"})) == [
        f"columns.0.{key}"
    ]
