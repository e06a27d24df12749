"""Estimates of prompt sizes, and the JSON of tool calls."""

import json

from hypothesis import given
from hypothesis import strategies as st

from apps.chat.prompt.messages import CountedPrompt, PromptCall, PromptMessage
from apps.chat.prompt.token_estimate import estimate, size_of, token_rate, tokens_of

messages = st.lists(
    st.builds(
        PromptMessage,
        id=st.integers(1, 10_000),
        role=st.sampled_from(["user", "assistant"]),
        content=st.text(max_size=50),
        image_tokens=st.integers(0, 300),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda message: message.id,
)


@given(messages, st.integers(0, 1000))
def test_a_later_start_is_never_larger(branch: list[PromptMessage], head: int) -> None:
    sizes = [estimate(head, branch, start, None) for start in range(len(branch))]
    assert sizes == sorted(sizes, reverse=True)


@given(messages, messages)
def test_sizes_add_up(first: list[PromptMessage], second: list[PromptMessage]) -> None:
    together = size_of([*first, *second])
    assert abs(together - size_of(first) - size_of(second)) <= 1  # images are rounded


@given(messages, st.integers(1, 5000))
def test_a_counted_prompt_is_exact(branch: list[PromptMessage], tokens: int) -> None:
    counted = CountedPrompt(tokens, branch[-1].id)
    assert estimate(0, branch, 0, counted) == tokens
    assert token_rate(0, branch, counted) > 0


@given(st.text(max_size=40))
def test_arguments_are_always_a_json_object(arguments: str) -> None:
    sent = PromptCall("c", "sum", arguments).as_sent()["function"]["arguments"]
    decoded = json.loads(sent)
    assert isinstance(decoded, dict)
    assert sent in (arguments, "{}") or decoded == {"invalid": arguments}


def test_a_message_costs_its_template() -> None:
    assert tokens_of(0, 3) == 24
