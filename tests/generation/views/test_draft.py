"""The form of a new job: what it keeps as typed, and the job it asks for."""

import json
from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.recipe.library.starters import STARTERS, Starter
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.views.draft import Draft
from apps.generation.views.form_errors import ERROR_PLACES, PARAMS

RECIPE = {"columns": [{"name": "text", "kind": "text", "prompt": "Write."}]}
FORM = {
    "name": "Texts",
    "recipe": json.dumps(RECIPE),
    "rows": "20",
    "seed": "7",
    "weight": "",
    "temperature": "0.5",
    "max_tokens": "100",
}


def posted(**changes: str) -> Draft:
    data = QueryDict(mutable=True)
    data.update({**FORM, **changes})
    return Draft.posted(data)


def test_a_form_asks_for_a_job() -> None:
    request = posted(near="85", meaning="90,5", width="4", daily_tokens="1000", keep="1").read()
    assert request is not None
    assert (request.name, request.rows, request.seed, request.weight) == ("Texts", 20, 7, 1)
    assert (request.near, request.meaning) == (0.85, 0.905)
    assert (request.width, request.daily_tokens, request.keep_recipe) == (4, 1000, True)
    assert request.refill is False
    assert request.recipe.params == {"temperature": 0.5, "max_tokens": 100}


def test_empty_fields_are_defaults() -> None:
    request = posted(seed="", temperature="", test_dataset="x").read()
    assert request is not None
    assert request.near is request.width is request.test_dataset is None
    assert request.recipe.params["temperature"] is None
    assert 0 <= request.seed < 2**31


def test_draft_reports_every_error_at_once() -> None:
    draft = posted(name="", rows="x", near="1", recipe='{"columns": [{"name": "a"}]}')
    assert draft.read() is None
    assert set(draft.errors) == {"name", "rows", "near"}
    assert [problem.place for problem in draft.problems] == [("columns", 0)]


def test_errors_are_those_of_the_last_reading() -> None:
    draft = posted(name="")
    assert draft.read() is None
    draft.name = "Named"
    assert draft.read() is not None
    assert draft.errors == {}


@pytest.mark.parametrize("starter", STARTERS, ids=lambda starter: starter.key)
def test_a_starter_is_read_again_as_it_was(starter: Starter) -> None:
    draft = Draft.from_recipe(starter.name, starter.recipe)
    data = QueryDict(mutable=True)
    data.update({"name": draft.name, "recipe": draft.recipe, "rows": "5", "weight": "1"})
    data.update({"system": draft.system, **draft.params})
    request = Draft.posted(data).read()
    assert request is not None
    assert request.recipe.system == starter.recipe["system"]
    prompts = [column.prompt for column in request.recipe.written]
    assert json.dumps(prompts[-1])[1:-1] in json.dumps(starter.recipe) or "criteria" in json.dumps(
        starter.recipe
    )


def test_parameters_without_a_field_stay_in_the_recipe() -> None:
    draft = Draft.from_recipe("A", {**RECIPE, "params": {"top_p": 0.5, "min_p": 0.1}})
    assert json.loads(draft.recipe)["params"] == {"top_p": 0.5}
    assert draft.params == {
        "temperature": "0.9",
        "min_p": "0.1",
        "max_tokens": "300",
        "thinking": "",
    }


@pytest.mark.parametrize(
    ("place", "field"),
    [
        (("prompt",), "columns"),
        (("system",), "system"),
        (("quotas", "label"), "quotas"),
        (("columns",), "columns"),
        (("meaning",), "meaning"),
        (("params", "temperature"), "temperature"),
        (("params", "top_k"), "columns"),
        (("params",), "columns"),
        ((), "columns"),
    ],
)
def test_a_problem_is_shown_at_its_field(place: tuple[str | int, ...], field: str) -> None:
    draft = Draft()
    draft.report_all(RecipeError([Problem(place, "Wrong.")]))
    assert list(draft.errors) == [field]
    assert "Wrong." in draft.errors[field]
    assert field in ERROR_PLACES


def test_the_first_error_of_a_field_stays() -> None:
    draft = Draft()
    draft.report(Problem(("system",), "First."))
    draft.report(Problem(("system",), "Second."))
    assert draft.errors == {"system": "First."}


def test_feedback_fills_some_places_and_empties_the_others() -> None:
    draft = posted(rows="x")
    draft.read()
    feedback = draft.feedback()
    assert dict(feedback["sentences"])["rows"]
    assert [name for name, sentence in feedback["sentences"] if sentence] == ["rows"]
    assert [name for name, _ in feedback["sentences"]] == list(ERROR_PLACES)
    assert set(PARAMS) <= set(ERROR_PLACES)


@given(
    st.dictionaries(
        st.sampled_from(sorted([*FORM, "near", "width", "test_dataset", "thinking", "system"])),
        st.text(max_size=15),
    )
)
def test_no_form_raises(changes: dict[str, str]) -> None:
    draft = posted(**changes)
    assert (draft.read() is None) == bool(draft.errors or draft.problems)


@given(st.recursive(st.none() | st.text(max_size=3) | st.integers(), st.lists))
def test_no_json_of_the_editor_raises(value: Any) -> None:
    draft = posted(recipe=json.dumps(value))
    assert draft.read() is None
    assert "columns" in draft.errors
