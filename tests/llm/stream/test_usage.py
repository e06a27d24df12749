"""Tokens of an answer: reported, missing, null, or in llama.cpp's timings alone."""

from typing import Any

import pytest

from apps.llm.chat_request import ChatRequest
from apps.llm.events import Usage
from apps.llm.stream.usage import estimate_usage, parse_usage

COUNTS = {"prompt_tokens": 7, "completion_tokens": 3}


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        ({"usage": COUNTS}, Usage(7, 0, 3)),
        ({"usage": {**COUNTS, "prompt_tokens_details": {"cached_tokens": 5}}}, Usage(7, 5, 3)),
        ({"usage": {**COUNTS, "prompt_tokens_details": None}}, Usage(7, 0, 3)),
        ({"usage": None}, None),
        ({}, None),
        ({"usage": {"prompt_tokens": None, "completion_tokens": None}}, None),
        ({"usage": {"prompt_tokens": 7, "completion_tokens": None}}, None),
        ({"timings": {"cache_n": 4, "prompt_n": 3, "predicted_n": 9}}, Usage(7, 4, 9)),
        ({"usage": None, "timings": {"predicted_n": None}}, None),
    ],
)
def test_a_count_that_is_missing_is_no_zero(chunk: dict[str, Any], expected: Usage | None) -> None:
    assert parse_usage(chunk) == expected


@pytest.mark.parametrize("count", [-1, "7", True])
def test_a_count_that_no_server_sends(count: object) -> None:
    with pytest.raises(ValueError, match=str(count)):
        parse_usage({"usage": COUNTS | {"prompt_tokens": count}})


def test_without_usage_the_pieces_are_counted() -> None:
    request = ChatRequest("m", [{"role": "user", "content": "Hello there"}], 8)
    usage = estimate_usage(request, ["a", "b", "c"], ["hm"])
    assert (usage.completion_tokens, usage.is_estimated, usage.tells_cached) == (4, True, False)
    assert usage.prompt_tokens > 2


def test_a_server_that_sends_a_whole_answer_at_once_is_not_taken_to_write_one_token() -> None:
    request = ChatRequest("m", [{"role": "user", "content": "Hello"}], 8)
    assert estimate_usage(request, ["word " * 40], []).completion_tokens == 50


def test_the_time_of_the_prompt_is_read_from_timings() -> None:
    usage = parse_usage({"usage": COUNTS, "timings": {"prompt_n": 6, "prompt_ms": 12.5}})
    assert usage is not None
    assert (usage.prefilled, usage.prefill_ms) == (6, 12)
