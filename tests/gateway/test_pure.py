"""The parts of the gateway that need no server."""

import json

import pytest

from apps.gateway.errors import from_model_server
from apps.gateway.program_request import read_request
from apps.gateway.routes import upstream_url
from apps.gateway.usage import usage_in
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
        (b'"timings":{"cache_n":4,"prompt_n":5,"predicted_n":6}', Usage(9, 4, 6)),
        (b'"usage": {"input_tokens": 3, "output_tokens": 2}', Usage(3, 0, 2)),
        (b"data: [DONE]", None),
    ],
    ids=["llama.cpp", "llama.cpp without usage", "Anthropic", "nothing"],
)
def test_tokens_are_read_from_an_answers_end(tail: bytes, usage: Usage | None) -> None:
    assert usage_in(tail) == usage


def test_lane_and_program_come_from_headers() -> None:
    headers = [(b"X-Workbench-Lane", b"batch"), (b"User-Agent", b"Open WebUI/0.6 (x)")]
    request = read_request("/v1/completions", headers, b'{"prompt":"a","max_tokens":7}')
    assert (request.lane, request.program) == (Lane.BATCH, "Open WebUI")
    assert "x-workbench-lane" not in request.headers
    assert request.token_bound == 7 + len(request.body) // 3 + 1


@pytest.mark.parametrize(
    ("header", "of_key", "lane"),
    [
        (None, "batch", Lane.BATCH),
        (b"idle", "batch", Lane.IDLE),
        (b"person", "batch", Lane.BATCH),
        (b"batch", "idle", Lane.IDLE),
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
