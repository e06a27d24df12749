"""The fields of a request that carry a setting of thinking."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.llm.failures.request_fields import THINKING
from apps.llm.thinking import (
    MAX_BUDGET,
    NOT_REPORTED,
    THINKING_TOKENS,
    Effort,
    ThinkingSupport,
    plan_thinking,
)
from apps.llm.thinking.request import END_TOKENS, ENDED_BUDGET

SWITCH = ThinkingSupport(True, can_switch=True, can_disable=True)
OLD_FACTS = ThinkingSupport(True, can_switch=True, can_disable=None)
EFFORT = ThinkingSupport(True, can_switch=True, can_disable=False)
ALWAYS = ThinkingSupport(True, can_switch=False, can_disable=False)
NEVER = ThinkingSupport(False, can_switch=False, can_disable=False)
OFF = {
    "reasoning_effort": "none",
    "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
}
ON = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
DEFAULT_BUDGET = {"reasoning_budget_tokens": THINKING_TOKENS}
ENDED = {"reasoning_budget_tokens": ENDED_BUDGET}
LOW = {"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "low"}}


@pytest.mark.parametrize(
    ("support", "setting", "params", "extra_tokens"),
    [
        (SWITCH, None, OFF, 0),
        (SWITCH, "off", OFF, 0),
        (SWITCH, 0, OFF, 0),
        (OLD_FACTS, None, OFF, 0),
        (ALWAYS, None, ENDED, END_TOKENS),
        (EFFORT, "off", {**ENDED, **LOW}, END_TOKENS),
        (NEVER, None, {}, 0),
        (NEVER, "on", {}, 0),
        (NOT_REPORTED, None, {}, 0),  # a strict server takes nothing that nobody asked for
        (NOT_REPORTED, "off", OFF, 0),
        (NOT_REPORTED, "default", {}, 0),
        (NOT_REPORTED, "on", ON, THINKING_TOKENS),
        (NOT_REPORTED, 500, {"reasoning_budget_tokens": 500, **ON}, 500),
        (SWITCH, "default", DEFAULT_BUDGET, THINKING_TOKENS),
        (SWITCH, "on", {**DEFAULT_BUDGET, **ON}, THINKING_TOKENS),
        (ALWAYS, 500, {"reasoning_budget_tokens": 500}, 500),
        (EFFORT, "on", DEFAULT_BUDGET, THINKING_TOKENS),
    ],
)
def test_plan_thinking_per_support(
    support: ThinkingSupport, setting: Any, params: dict[str, Any], extra_tokens: int
) -> None:
    found = plan_thinking(support, setting)
    assert (found.params, found.extra_tokens) == (params, extra_tokens)


@pytest.mark.parametrize("setting", ["default", "on"])
def test_an_answer_without_a_limit_needs_neither_room_nor_budget(setting: Any) -> None:
    found = plan_thinking(SWITCH, setting, has_limit=False)
    assert found.extra_tokens == 0
    assert "reasoning_budget_tokens" not in found.params
    assert plan_thinking(SWITCH, 300, has_limit=False).params["reasoning_budget_tokens"] == 300


def test_an_effort_is_passed_on_and_gets_room() -> None:
    found = plan_thinking(NOT_REPORTED, effort="high")
    assert found.params["reasoning_effort"] == "high"
    assert found.extra_tokens == THINKING_TOKENS
    assert plan_thinking(EFFORT, effort="high").params["chat_template_kwargs"] == {
        "reasoning_effort": "high"
    }


def test_no_effort_is_off() -> None:
    assert plan_thinking(SWITCH, effort="none").params == OFF


@pytest.mark.parametrize("support", [SWITCH, ALWAYS, NOT_REPORTED, NEVER])
def test_a_thought_in_spite_of_off_gets_room(support: ThinkingSupport) -> None:
    assert plan_thinking(support, has_overrun=True).extra_tokens == THINKING_TOKENS


SUPPORT = st.builds(ThinkingSupport, *[st.sampled_from([None, True, False])] * 3)
SETTING = st.sampled_from([None, "default", "off", "on"]) | st.integers(0, MAX_BUDGET)
EFFORTS = st.sampled_from(["", *get_args(Effort)])


@given(SUPPORT, SETTING, EFFORTS, st.booleans(), st.booleans(), st.integers(1, 4096))
@settings(max_examples=200)
def test_plan_thinking_gives_each_budget_its_room_and_sends_what_can_be_left_out(
    support: ThinkingSupport,
    setting: Any,
    effort: str,
    has_thought: bool,
    has_overrun: bool,
    default_budget: int,
) -> None:
    plan = plan_thinking(
        support,
        setting,
        effort,
        has_thought=has_thought,
        has_overrun=has_overrun,
        default_budget=default_budget,
    )
    assert plan.extra_tokens >= plan.params.get("reasoning_budget_tokens", 0) >= 0
    assert plan.params.keys() <= THINKING
