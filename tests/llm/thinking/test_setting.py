"""The setting of thinking as forms write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.llm.thinking import MAX_BUDGET, label_of, parse_thinking, thinking_choices


@given(st.sampled_from(["default", "off", "on"]) | st.integers(1, MAX_BUDGET))
def test_a_setting_survives_its_select(setting: str | int) -> None:
    values = [value for value, _ in thinking_choices(str(setting))]
    assert str(setting) in values
    assert len(values) == len(set(values))
    assert parse_thinking(str(setting)) == setting


@pytest.mark.parametrize("text", ["", "maybe", "-1", "1.5", "32001", "٣", "9" * 30])
def test_parse_refuses_the_rest(text: str) -> None:
    with pytest.raises(ValueError, match="a number of tokens from 0 to 32,000"):
        parse_thinking(text)


def test_no_tokens_are_off() -> None:
    assert parse_thinking("0") == "off"
    assert label_of(0) == "Off"
    assert label_of(2048) == "Up to 2,048 tokens"


def test_choices_begin_with_the_default_of_the_form() -> None:
    assert thinking_choices("on")[0] == ("default", "Model default")
    assert thinking_choices("on", first="off")[0] == ("off", "Off")
