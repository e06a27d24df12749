"""The parts of the gateway that need no server."""

import json

import pytest

from apps.gateway.errors import from_model_server
from apps.gateway.program_request import MEDIA_TOKENS, read_request
from apps.gateway.routes import upstream_url
from apps.gateway.usage.reported import (
    ReportedTokens,
    is_only_thought,
    reported_tokens,
    usage_in,
)
from apps.llm import errors
from apps.llm.events import Usage
from apps.llm.permits import Lane


@pytest.mark.parametrize(
    ("tail", "usage"),
    [
        (
            b'"usage":{"completion_tokens":5,"prompt_tokens":9,"prompt_tokens_details":'
            b'{"cached_tokens":4}},"timings":{"cache_n":4,"prompt_n":5,"predicted_n":5,"predicted_per_second":12.5}}',
            Usage(9, 4, 5, 12.5),
        ),
        (
            b'"timings":{"cache_n":4,"prompt_n":5,"predicted_n":6,"draft_n":9,"draft_n_accepted":2}',
            Usage(9, 4, 6, drafted=9, draft_accepted=2),
        ),
        (b'"timings":{"cache_n":4,"prompt_n":5,"predicted_n":6}', Usage(9, 4, 6)),
        (b'"usage": {"input_tokens": 3, "output_tokens": 2}', Usage(3, 0, 2)),
        (b"data: [DONE]", None),
    ],
    ids=["llama.cpp", "llama.cpp with drafts", "llama.cpp without usage", "Anthropic", "nothing"],
)
def test_tokens_are_read_from_an_answers_end(tail: bytes, usage: Usage | None) -> None:
    assert usage_in(tail) == usage


@pytest.mark.parametrize(
    ("head", "tail", "tokens"),
    [
        (
            b'"usage":{"cache_read_input_tokens":4,"input_tokens":5,"output_tokens":0}',
            b'"type":"message_delta","usage":{"output_tokens":6}',
            ReportedTokens(9, 4, 6),
        ),
        (b'"usage":{"input_tokens":5,"output_tokens":1}', b'"text":"a"', ReportedTokens(5)),
        (b"", b'"usage":{"prompt_tokens":3,"total_tokens":3}', ReportedTokens(3)),
        (b"", b'"content":"\\"prompt_tokens\\": 5"', ReportedTokens()),
        (b"", b'"usage":{"completion_tokens":2}', ReportedTokens(completion=2)),
    ],
    ids=["Anthropic's stream", "broken off", "embeddings", "the model's words", "answer alone"],
)
def test_what_is_not_reported_is_unknown(head: bytes, tail: bytes, tokens: ReportedTokens) -> None:
    assert reported_tokens(tail, head) == tokens


def test_the_time_of_the_prompt_is_reported() -> None:
    tail = b'"timings":{"cache_n":4,"prompt_n":500,"prompt_ms":81.5,"predicted_n":6}'
    usage = usage_in(tail)
    assert usage is not None
    assert (usage.prefilled, usage.prefill_ms) == (500, 81)


LENGTH, STOP = b'"finish_reason":"length"', b'"finish_reason":"stop"'


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        (b"", b'{"delta":{"reasoning_content":"Hm"}}' + LENGTH, True),
        (b'"delta":{"role":"assistant","content":null}', b'"reasoning":"Hm"' + LENGTH, True),
        (LENGTH + b'"content":"","reasoning_content":"Hm', b'm"}', True),
        (b"", b'"reasoning_content":"Hm","content":"A"' + LENGTH, False),
        (LENGTH + b'"content":"An answer","reasoning_content":"Hm', b'm"}', False),
        (b"", b'"reasoning_content":"Hm","tool_calls":[{"index":0' + LENGTH, False),
        (b"", b'"content":"A"' + STOP, False),
        (b"", b'"reasoning_content":"\\"finish_reason\\":\\"length\\""', None),
        (b"", b'"reasoning_content":"Hm"', None),
        (b"", b'"text":"A"' + LENGTH, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_answers_whose_thought_used_up_their_tokens_are_known(
    head: bytes, tail: bytes, expected: bool | None
) -> None:
    assert is_only_thought(tail, head) is expected


def test_lane_and_program_come_from_headers() -> None:
    headers = [(b"X-Workbench-Lane", b"batch"), (b"User-Agent", b"Open WebUI/0.6 (x)")]
    request = read_request("/v1/completions", headers, b'{"prompt":"a","max_tokens":7}')
    assert (request.lane, request.program) == (Lane.BATCH, "Open WebUI")
    assert "x-workbench-lane" not in request.headers
    assert request.token_bound == 7 + len(request.body) // 3 + 1


def test_an_image_does_not_count_as_text() -> None:
    image = "iVBORw0KGgo/" * 100_000
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}},
        {"type": "text", "text": "What is this?"},
    ]
    body = {"messages": [{"role": "user", "content": parts}], "max_tokens": 10}
    request = read_request("/v1/chat/completions", [], json.dumps(body).encode())
    assert 2 * MEDIA_TOKENS < request.token_bound < 2 * MEDIA_TOKENS + 200


@pytest.mark.parametrize(
    ("header", "of_key", "lane"),
    [
        (None, "batch", Lane.BATCH),
        (b"idle", "batch", Lane.IDLE),
        (b"person", "batch", Lane.BATCH),
        (b"batch", "idle", Lane.IDLE),
        (None, "agent", Lane.AGENT),
        (b"person", "agent", Lane.AGENT),
        (b"batch", "agent", Lane.BATCH),
    ],
)
def test_header_may_lower_the_lane_of_a_key(header: bytes | None, of_key: str, lane: Lane) -> None:
    headers = [(b"x-workbench-lane", header)] if header else []
    assert read_request("/v1/completions", headers, b"{}", of_key).lane is lane


SYSTEM, QUESTION = {"role": "system", "content": "a"}, {"role": "user", "content": "b"}
ANSWER = {"role": "assistant", "content": "c"}


@pytest.mark.parametrize("begun", [[SYSTEM, QUESTION], [QUESTION]], ids=["system", "plain"])
def test_a_conversation_keeps_its_beginning(begun: list[dict[str, str]]) -> None:
    turns = [begun, [*begun, ANSWER, QUESTION]]
    found = {beginning(messages=messages) for messages in turns}
    assert len(found) == 1
    assert found != {beginning(messages=[{**QUESTION, "content": "d"}])}


def test_a_prompt_that_grows_keeps_its_beginning() -> None:
    prompt = "def add(a, b):\n" * 20
    assert beginning(prompt=prompt) == beginning(prompt=f"{prompt}    return")


def beginning(**fields: object) -> str:
    body = json.dumps(fields).encode()
    return read_request("/v1/chat/completions", [], body).beginning


def prefix(**fields: object) -> str:
    return read_request("/v1/chat/completions", [], json.dumps(fields).encode()).prefix


def test_requests_with_the_same_instructions_have_the_same_prefix() -> None:
    other = {**QUESTION, "content": "d"}
    assert prefix(messages=[SYSTEM, QUESTION]) == prefix(messages=[SYSTEM, other])
    assert prefix(messages=[SYSTEM, QUESTION]) != prefix(messages=[QUESTION])
    assert prefix(system="a", messages=[QUESTION]) == prefix(system="a", messages=[other])
    assert prefix(messages=[QUESTION]) != prefix(messages=[other])
    assert prefix(input=["a"]) != ""
    assert prefix() == ""


def test_native_routes_lie_at_the_root() -> None:
    root, base = "http://a:1", "http://a:1/v1"
    assert upstream_url("/infill", root, base) == "http://a:1/infill"
    assert upstream_url("/v1/messages", root, base) == "http://a:1/v1/messages"


@pytest.mark.parametrize(
    ("error", "status", "waits"),
    [
        (errors.Busy("Full.", 3), 429, 3),
        (errors.BackendGone("Gone."), 503, 5),
        (errors.Unauthorized("Wrong key."), 502, None),
        (errors.ProxyTimeout("Slow."), 504, None),
    ],
)
def test_status_of_a_failed_server(error: errors.LLMError, status: int, waits: int | None) -> None:
    told = from_model_server(error)
    assert (told.status, told.retry_after) == (status, waits)
