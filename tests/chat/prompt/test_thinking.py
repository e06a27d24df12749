"""Thinking in a chat: its setting, and what is sent for it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.chat.models import SamplingParams
from apps.chat.prompt.thinking import setting_of, thinking_fields
from apps.llm.thinking import ENDED_BUDGET, NOT_REPORTED, THINKING_TOKENS, ThinkingSupport

SWITCH = ThinkingSupport(True, can_switch=True, can_disable=True)


def params(**values: Any) -> SamplingParams:
    return SamplingParams(**values)


@pytest.mark.parametrize(
    ("stored", "setting"),
    [
        ({}, "default"),
        ({"thinking": "off"}, "off"),
        ({"thinking": 512}, 512),
        # As earlier versions stored it, and as programs may still send it:
        ({"chat_template_kwargs": {"enable_thinking": False}}, "off"),
        ({"chat_template_kwargs": {"enable_thinking": True}}, "on"),
        ({"chat_template_kwargs": {"thinking": True}, "reasoning_budget_tokens": 300}, 300),
        ({"reasoning_budget_tokens": 0}, "off"),
        ({"reasoning_budget_tokens": -1}, "default"),
    ],
)
def test_setting_of_stored_parameters(stored: dict[str, Any], setting: str | int) -> None:
    assert setting_of(params(**stored)) == setting


def test_a_budget_is_sent_and_comes_on_top() -> None:
    sent, extra = thinking_fields(params(thinking=300, max_tokens=50, top_k=4), SWITCH)
    assert (sent["reasoning_budget_tokens"], sent["top_k"], extra) == (300, 4, 300)
    assert "thinking" not in sent


def test_the_arguments_of_a_template_are_kept_beside_the_switch() -> None:
    given = params(thinking="on", chat_template_kwargs={"style": "dry", "enable_thinking": False})
    sent, _ = thinking_fields(given, SWITCH)
    assert sent["chat_template_kwargs"] == {
        "style": "dry",
        "enable_thinking": True,
        "thinking": True,
    }


def test_the_model_default_sends_nothing_unless_an_answer_is_limited() -> None:
    assert thinking_fields(params(), SWITCH) == ({}, 0)
    assert thinking_fields(params(max_tokens=9), NOT_REPORTED) == ({"max_tokens": 9}, 0)
    sent, extra = thinking_fields(params(max_tokens=9), SWITCH)
    assert sent["reasoning_budget_tokens"] == extra == THINKING_TOKENS


def test_a_default_budget_leaves_most_of_a_small_slot_to_prompt_and_answer() -> None:
    _, extra = thinking_fields(params(max_tokens=9), SWITCH, context=1000)
    assert extra == 250


def test_a_title_ends_the_thought_and_keeps_the_start_of_the_prompt() -> None:
    given = params(thinking="on", max_tokens=48)
    chat, _ = thinking_fields(given, SWITCH)
    title, _ = thinking_fields(given, SWITCH, ends_at_once=True)
    assert title["reasoning_budget_tokens"] == ENDED_BUDGET
    assert title["chat_template_kwargs"] == chat["chat_template_kwargs"]
    unknown, _ = thinking_fields(given, NOT_REPORTED, ends_at_once=True)
    assert unknown["reasoning_effort"] == "none"


def test_fields_of_the_server_replace_a_stored_setting() -> None:
    given = params(thinking="on").updated_by(
        params(chat_template_kwargs={"enable_thinking": False})
    )
    assert setting_of(given) == "off"
    assert setting_of(given.updated_by(params(thinking=9))) == 9


@given(
    st.builds(
        SamplingParams,
        max_tokens=st.none() | st.integers(1, 9_000),
        thinking=st.none() | st.sampled_from(["default", "off", "on", 0, 700]),
        reasoning_budget_tokens=st.none() | st.integers(-1, 900),
        reasoning_effort=st.sampled_from([None, "none", "low", "high"]),
        chat_template_kwargs=st.none()
        | st.dictionaries(st.sampled_from(["thinking", "style"]), st.booleans()),
    ),
    st.builds(ThinkingSupport, *[st.sampled_from([None, True, False])] * 3),
    st.none() | st.integers(1, 200_000),
    st.booleans(),
)
def test_thinking_fields_keep_max_tokens_and_give_a_thought_its_room(
    given_params: SamplingParams,
    support: ThinkingSupport,
    context: int | None,
    ends_at_once: bool,
) -> None:
    sent, extra = thinking_fields(given_params, support, context=context, ends_at_once=ends_at_once)
    assert sent.get("max_tokens") == given_params.max_tokens
    assert extra >= 0
    if given_params.max_tokens is not None and not ends_at_once:
        assert extra >= sent.get("reasoning_budget_tokens", 0)
    kept = {"style"} & (given_params.chat_template_kwargs or {}).keys()
    assert kept <= sent.get("chat_template_kwargs", {}).keys()
