"""Answers of jobs without their thoughts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.llm.client import ChatRequest, Completion
from apps.llm.events import Usage
from apps.llm.thinking import (
    NOT_REPORTED,
    THINKING_TOKENS,
    Thinking,
    ThinkingSetting,
    ThinkingSupport,
    describe_missing_answer,
)
from apps.llm.thinking.request import END_TOKENS

ALWAYS = ThinkingSupport(True, can_switch=False, can_disable=False)
NEVER = ThinkingSupport(False, can_switch=False, can_disable=False)
REQUEST = ChatRequest("m", [], 100)


class Model:
    """Thinks for some tokens, then writes."""

    def __init__(self, thought: int, *, shows: bool = True) -> None:
        self.thought, self.shows = thought, shows
        self.asked: list[ChatRequest] = []

    async def __call__(self, request: ChatRequest) -> Completion:
        self.asked.append(request)
        assert request.max_tokens is not None
        usage = Usage(10, 0, min(request.max_tokens, self.thought + 5))
        reasoning = "hm" if self.shows else ""
        if request.max_tokens <= self.thought:
            return Completion("", reasoning, "length", usage)
        return Completion("the answer", reasoning, "stop", usage)


@pytest.mark.parametrize("shows", [True, False])
async def test_a_model_nobody_knew_to_think_is_asked_again_with_room(shows: bool) -> None:
    thinking, model = Thinking(), Model(300, shows=shows)
    completion = await thinking.complete(model, REQUEST)
    assert completion.text == "the answer"
    assert [request.max_tokens for request in model.asked] == [100, 100 + THINKING_TOKENS]
    assert completion.usage.completion_tokens == 100 + 305  # both were paid for
    await thinking.complete(model, REQUEST)  # and remembered: the next request has the room at once
    assert [request.max_tokens for request in model.asked[2:]] == [100 + THINKING_TOKENS]


@pytest.mark.parametrize("tells", [True, False])
async def test_what_both_answers_cost_says_whether_the_cache_was_told(tells: bool) -> None:
    model = Model(300)

    async def complete(request: ChatRequest) -> Completion:
        completion = await model(request)
        told = tells or len(model.asked) > 1  # the second answer tells
        return replace(completion, usage=replace(completion.usage, tells_cached=told))

    completion = await Thinking().complete(complete, REQUEST)
    assert len(model.asked) == 2
    assert completion.usage.tells_cached is tells


async def test_one_that_thinks_beyond_all_room_is_said_to() -> None:
    thinking, model = Thinking(ALWAYS), Model(10_000)
    completion = await thinking.complete(model, REQUEST)
    # The first thought was to end at once; its server knows no budgets, so the second had room.
    asked = [request.max_tokens for request in model.asked]
    assert asked == [100 + END_TOKENS, 100 + THINKING_TOKENS]
    assert describe_missing_answer(completion, 100).startswith(
        "The model spent all 2,312 tokens thinking"
    )
    assert "Turn thinking off" in describe_missing_answer(completion, 100)


async def test_an_answer_that_is_merely_too_long_is_not_asked_again() -> None:
    async def model(request: ChatRequest) -> Completion:
        return Completion("begun", "hm", "length", Usage(1, 0, 100))

    completion = await Thinking().complete(model, REQUEST)
    assert describe_missing_answer(completion, 100) == ""


@pytest.mark.parametrize(
    ("support", "text", "answer"),
    [
        (NOT_REPORTED, "<think>\nhm\n</think>\n\nThe answer.", "The answer."),
        (NOT_REPORTED, "hm\n</think>\n\nThe answer.", "The answer."),
        (NEVER, "A page about </think> in HTML.", "A page about </think> in HTML."),
        (NOT_REPORTED, "No thought at all.", "No thought at all."),
    ],
)
async def test_a_thought_that_the_server_left_in_the_text_is_no_part_of_the_answer(
    support: ThinkingSupport, text: str, answer: str
) -> None:
    async def model(request: ChatRequest) -> Completion:
        return Completion(text, "", "stop", Usage(1, 0, 9))

    assert (await Thinking(support).complete(model, REQUEST)).text == answer


def test_an_empty_answer_after_a_thought_has_its_reason() -> None:
    found = describe_missing_answer(Completion(" ", "hm", "stop", Usage(1, 0, 9)), 100)
    assert found.startswith("The model ended after its thinking")
    assert describe_missing_answer(Completion("", "", "stop", Usage(1, 0, 0)), 100) == ""


async def test_a_model_that_was_seen_to_think_is_told_not_to() -> None:
    thinking, model = Thinking(), Model(50)
    assert (await thinking.complete(model, REQUEST)).text == "the answer"
    await thinking.complete(model, REQUEST)
    first, second = model.asked
    assert (first.params, second.params["reasoning_effort"]) == ({}, "none")
    assert second.max_tokens == 100


@given(
    st.builds(ThinkingSupport, *[st.sampled_from([None, True, False])] * 3),
    st.sampled_from([None, "default", "off", "on", 0, 700]),
    st.sampled_from(["", "none", "low", "high"]),
    st.booleans(),
    st.none() | st.integers(1, 9_000),
)
def test_prepare_never_takes_room_or_parameters_from_the_answer(
    support: ThinkingSupport,
    setting: ThinkingSetting | None,
    effort: str,
    has_overrun: bool,
    max_tokens: int | None,
) -> None:
    thinking = Thinking(support)
    thinking.has_overrun = has_overrun
    request = replace(REQUEST, max_tokens=max_tokens, params={"temperature": 0.3})
    prepared = thinking.prepare(request, setting, effort)
    assert prepared.params["temperature"] == 0.3
    if max_tokens is None:
        assert prepared.max_tokens is None
    else:
        assert prepared.max_tokens is not None
        room = prepared.max_tokens - max_tokens
        assert room >= prepared.params.get("reasoning_budget_tokens", 0) >= 0


@given(st.text(max_size=20), st.lists(st.sampled_from(["<think>", "</think>", "hm", " "])))
async def test_complete_returns_no_letter_that_the_model_did_not_write(
    answer: str, pieces: list[str]
) -> None:
    text = "".join(pieces) + answer

    async def model(request: ChatRequest) -> Completion:
        return Completion(text, "", "stop", Usage(1, 0, 9))

    completion = await Thinking().complete(model, REQUEST)
    assert completion.text in text
    assert (await Thinking(NEVER).complete(model, REQUEST)).text == text
