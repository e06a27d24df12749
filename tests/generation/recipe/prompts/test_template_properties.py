"""Prompt templates: whatever is written, a prompt comes out in bounds, or a recipe error."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.budget import MAX_PROMPT, to_text
from apps.generation.recipe.prompts.filters import FILTERS
from apps.generation.recipe.prompts.names import check_name
from apps.generation.recipe.prompts.templates import (
    check,
    check_expression,
    evaluate,
    names_in,
    render,
)

PIECES = st.sampled_from(
    [
        *("{{ ", " }}", "{% if ", "{% for x in ", " %}", "{% else %}", "{% endif %}"),
        *("{% endfor %}", "a", "b", "x", "loop.index", "a.f", "|upper", "|join(", "|length", ")"),
        *("(", "~", "==", " in ", "[", "]", "'", "1", "99999999999", " and ", " not ", ", ", " + "),
        *("**", "|default(", "{# ", " #}", "{% raw %}", "{% endraw %}", "\n", "ä", " text "),
    ]
)
SOURCES = st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=60)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("fg"), inner),
    max_leaves=6,
)
ROWS = st.fixed_dictionaries({"a": VALUES, "b": VALUES})


def value_or_error(call: Callable[..., Any], *arguments: Any) -> Any:
    """The value of a call, or its recipe error; any other error fails the test."""
    try:
        return call(*arguments)
    except RecipeError as error:
        return error


@given(SOURCES, ROWS)
def test_template_renders_in_bounds_or_is_refused(source: str, row: dict[str, Any]) -> None:
    refused = value_or_error(check, source, list(row))
    prompt = value_or_error(render, source, row)
    if isinstance(prompt, RecipeError):
        assert str(prompt)
    else:
        assert refused is None or "column" in str(refused)  # in a branch that was not taken
        assert 0 < len(prompt) <= MAX_PROMPT
        assert prompt == prompt.strip()


@given(SOURCES, ROWS)
def test_expression_has_a_value_or_is_refused(source: str, row: dict[str, Any]) -> None:
    refused = value_or_error(check_expression, source, list(row))
    value = value_or_error(evaluate, source, row)
    assert value is None or isinstance(value, str | int | float | list | dict | RecipeError)
    if refused is not None and not isinstance(value, RecipeError):
        assert "column" in str(refused)  # a name in a branch that the row does not take


@given(SOURCES, ROWS)
def test_what_a_check_lets_pass_names_only_known_columns(source: str, row: dict[str, Any]) -> None:
    if value_or_error(check, source, []) is None:
        assert set(names_in(source)) <= {"x", "loop"}
        prompts = [value_or_error(render, source, known) for known in ({}, row)]
        assert str(prompts[0]) == str(prompts[1])


@given(st.text(max_size=60).filter(str.strip))
def test_a_value_is_never_read_as_a_template(text: str) -> None:
    assert render("{{ a }}", {"a": text}) == text.strip()
    assert render("{% if a == b %}same{% else %}other{% endif %}", {"a": text, "b": text}) == "same"


@given(VALUES)
def test_a_value_that_is_no_text_is_json(value: Any) -> None:
    text = to_text(value)
    if value is None:
        assert text == ""
    elif isinstance(value, str):
        assert text == value
    else:
        assert text == json.dumps(value, ensure_ascii=False)


@given(st.text(max_size=60))
def test_a_valid_name_is_one_name_of_a_template(name: str) -> None:
    if value_or_error(check_name, name) is None:
        assert names_in(f"{{{{ {name} }}}}") == [name]
        assert render(f"{{{{ {name} }}}}", {name: "value"}) == "value"


@given(st.lists(st.text(max_size=20), max_size=6), st.text(max_size=5))
def test_join_is_that_of_python(items: list[str], between: str) -> None:
    expression = "items|join(between)"
    assert evaluate(expression, {"items": items, "between": between}) == between.join(items)


@given(VALUES)
def test_no_filter_raises_another_error(value: Any) -> None:
    for name in FILTERS:
        value_or_error(evaluate, f"a|{name}", {"a": value})
