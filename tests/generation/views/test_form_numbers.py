"""Numbers as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.views.form_numbers import (
    as_typed,
    fraction,
    key_of,
    number,
    parameter,
    thinking_options,
    whole_number,
)


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("007", 7), ("100", 100)])
def test_whole_number_in_limits(text: str, value: int) -> None:
    assert whole_number(text, 1, 100) == value


@pytest.mark.parametrize("text", ["", "0", "101", "1.0", "-1", "+1", "١", "1e2", " 1", "9" * 400])
def test_whole_number_refuses_the_rest(text: str) -> None:
    with pytest.raises(ValueError, match=r"Enter an integer from 1 to 100\."):
        whole_number(text, 1, 100)


@pytest.mark.parametrize(
    ("text", "value"), [("", None), ("0", 0.0), ("0.9", 0.9), ("0,9", 0.9), ("2.", 2.0)]
)
def test_number_with_comma_or_point(text: str, value: float | None) -> None:
    assert number(text, 0, 5) == value


@pytest.mark.parametrize("text", ["x", "-1", "6", "1.2.3", "1e3", "nan", "٣", "9" * 400])
def test_number_refuses_the_rest(text: str) -> None:
    with pytest.raises(ValueError, match=r"Enter a number, such as 0\.9\."):
        number(text, 0, 5)


def test_fraction_is_a_percentage() -> None:
    assert fraction("85") == 0.85
    assert fraction("") is None
    for text in ("49", "101", "0.85"):
        with pytest.raises(ValueError, match="such as 85, from 50 to 100"):
            fraction(text)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("temperature", "", None),
        ("temperature", "1", 1.0),
        ("max_tokens", "300", 300),
        ("max_tokens", "1.5", 1.5),  # the recipe refuses it, with its own sentence
        ("thinking", "", None),
        ("thinking", "off", None),  # the default of jobs
        ("thinking", "default", "default"),
        ("thinking", "on", "on"),
        ("thinking", "512", 512),
    ],
)
def test_parameter_has_the_type_of_the_recipe(name: str, text: str, value: object) -> None:
    found = parameter(name, text)
    assert found == value
    assert type(found) is type(value)


@given(st.integers(0, 10**6) | st.floats(0, 1000).map(lambda value: round(value, 3)))
def test_a_parameter_survives_its_field(value: float) -> None:
    text = as_typed(value)
    if "e" not in text and (isinstance(value, int) or float(text) == value):
        assert parameter("temperature", text) == value


@given(st.text(max_size=30))
def test_key_is_a_number_that_a_database_takes(text: str) -> None:
    assert 0 <= key_of(text) < 2**63


def test_key_of_a_number() -> None:
    assert key_of("12") == 12
    assert [key_of(text) for text in ("", "x", "-1", "1.0", "٣", "9" * 19)] == [0] * 6


def test_thinking_options_have_the_current_one() -> None:
    assert ("700", "Up to 700 tokens") in thinking_options("700")
    assert [value for value, _ in thinking_options("on")][:3] == ["", "default", "on"]
    assert len(thinking_options("512")) == len(thinking_options(""))
