"""Filters of templates, one by one, and their budget."""

from typing import Any

import pytest

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.budget import (
    MAX_CHARACTERS,
    MAX_PROMPT,
    MAX_STEPS,
    Budget,
    field_of,
    to_text,
)
from apps.generation.recipe.prompts.filters import FILTERS, MAX_TRIMMED
from apps.generation.recipe.prompts.templates import evaluate

ROW: dict[str, Any] = {
    "name": "the Red kettle",
    "none": None,
    "list": ["a", 1, None],
    "object": {"a": "ä"},
    "zero": 0,
    "empty": "",
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("name|lower", "the red kettle"),
        ("name|upper", "THE RED KETTLE"),
        ("name|capitalize", "The red kettle"),
        ("name|title", "The Red Kettle"),
        ("none|upper", ""),
        ("object|upper", '{"A": "Ä"}'),
        ("'  a '|trim", "a"),
        ("'xxaxx'|trim('x')", "a"),
        ("'1a1'|trim(1)", "a"),
        ("list|join(', ')", "a, 1, "),
        ("list|join", "a1"),
        ("none|join('-')", ""),
        ("list|join(none)", "a1"),
        ("none|default('x')", "x"),
        ("empty|default('x')", "x"),
        ("zero|default('x')", 0),
        ("zero|default('x', true)", "x"),
        ("name|default('x')", "the Red kettle"),
        ("object|tojson", '{"a": "ä"}'),
        ("none|tojson", "null"),
        ("list|length", 3),
        ("object|length", 1),
        ("empty|length", 0),
        ("none|length", 0),
        ("name|upper|lower|length", 14),
    ],
)
def test_filter(expression: str, value: object) -> None:
    assert evaluate(expression, ROW) == value


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("zero|length", "“0” has no length"),
        ("name|join", "“join” needs a list, not “the Red kettle”"),
        ("name|trim(chars)", "removes up to 1,000 characters"),
        ("long|upper|upper|upper|upper|upper|upper|upper|upper|upper|upper|upper", "longer than"),
        ("[long, long]|join", "longer than 200,000 characters"),
        ("long ~ long", "longer than 200,000 characters"),
    ],
)
def test_a_filter_refuses(expression: str, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        evaluate(expression, ROW | {"long": "x" * MAX_PROMPT, "chars": "x" * 1_001})


def test_every_filter_is_tested_here() -> None:
    tested = {"lower", "upper", "capitalize", "title", "trim", "join", "default", "tojson"}
    assert set(FILTERS) == tested | {"length"}
    assert MAX_TRIMMED == 1_000


def test_a_budget_of_steps() -> None:
    budget = Budget()
    budget.spend_steps(MAX_STEPS)
    with pytest.raises(RecipeError, match="more than 100,000 steps"):
        budget.spend_steps(1)


def test_a_budget_of_characters() -> None:
    budget = Budget()
    for _ in range(MAX_CHARACTERS // MAX_PROMPT):
        budget.spend_characters(MAX_PROMPT)
    with pytest.raises(RecipeError, match="longer than 200,000"):
        budget.spend_characters(1)
    with pytest.raises(RecipeError, match="longer than 200,000"):
        Budget().spend_characters(MAX_PROMPT + 1)


def test_the_budget_is_that_of_one_prompt() -> None:
    for _ in range(3):
        assert evaluate("long|upper|length", {"long": "x" * MAX_PROMPT}) == MAX_PROMPT


def test_a_field_of_an_object() -> None:
    assert field_of({"a": 1}, "a") == 1
    assert field_of({"a": 1}, "b") is None
    assert field_of(None, "a") is None
    with pytest.raises(RecipeError, match="“x” has no field “a”: it is not an object"):
        field_of("x", "a")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), ("x", "x"), (1, "1"), (True, "true"), ([1, "ä"], '[1, "ä"]'), ({}, "{}")],
)
def test_a_value_as_text(value: object, text: str) -> None:
    assert to_text(value) == text
