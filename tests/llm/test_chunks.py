"""The lines of a chat stream, without a server."""

import json
from typing import Any

import pytest

from apps.llm import errors
from apps.llm.chunks import ChunkReader, WholeAnswer
from apps.llm.events import Done, Event, Progress, Reasoning, Token, ToolCall, Usage


def line(**data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def delta(reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}


WHOLE = b"".join(
    [
        b": ping\n\n",
        line(**delta(role="assistant", content=None), prompt_progress={"total": 9, "cache": 4}),
        line(**delta(reasoning_content="hm")),
        line(**delta(content="é ")),
        line(**delta(content="")),
        line(**delta(tool_calls=[{"index": 0}])),
        line(**delta("stop")),
        line(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 2}),
        b"data: [DONE]\n\n",
    ]
)
EVENTS: list[Event] = [
    Progress(9, 4, 0),
    Reasoning("hm"),
    Token("é "),
    ToolCall({"index": 0}),
    Done("stop"),
    Usage(9, 0, 2),
]


@pytest.mark.parametrize("size", [1, 2, 3, 10, 100, len(WHOLE)])
def test_however_it_is_cut(size: int) -> None:
    reader = ChunkReader()
    pieces = [WHOLE[start : start + size] for start in range(0, len(WHOLE), size)]
    assert [event for data in pieces for event in reader.feed(data)] == EVENTS


def test_no_space_after_the_colon_and_carriage_returns() -> None:
    data = line(**delta(content="a")).replace(b"data: ", b"data:").replace(b"\n", b"\r\n")
    assert ChunkReader().feed(data) == [Token("a")]


def test_the_noise_of_a_proxy_that_loads_is_nobodys_reasoning() -> None:
    loading = delta(reasoning_content="llama-swap loading model...") | {"id": ""}
    assert ChunkReader().feed(line(**loading)) == []


@pytest.mark.parametrize(
    "data",
    [
        line(error={"code": 500, "message": "Compute error."}),
        b'{"error": {"message": "Compute error."}}\n',
        b'error: {"message": "Compute error."}\n',
        b"error: Compute error.\n",
    ],
)
def test_errors_in_the_stream(data: bytes) -> None:
    with pytest.raises(errors.ServerFailed, match="Compute error"):
        ChunkReader().feed(data)


def test_what_is_no_json() -> None:
    with pytest.raises(errors.ServerFailed, match="not JSON"):
        ChunkReader().feed(b'data: {"choices": [\n')


@pytest.mark.parametrize("size", [1, 7, 100, len(WHOLE)])
def test_the_whole_answer_is_the_sum_of_its_events(size: int) -> None:
    answer = WholeAnswer()
    for start in range(0, len(WHOLE), size):
        answer.feed(WHOLE[start : start + size])
    answer.end()
    assert ("".join(answer.text), "".join(answer.reasoning)) == ("é ", "hm")
    assert (answer.finish_reason, answer.usage) == ("stop", Usage(9, 0, 2))


def test_a_line_without_an_end_and_usage_beside_text_count_too() -> None:
    answer = WholeAnswer()
    answer.feed(line(**delta(content="a"), usage={"prompt_tokens": 3, "completion_tokens": 1}))
    answer.feed(line(**delta("stop")).rstrip(b"\n"))
    answer.end()
    assert (answer.text, answer.finish_reason, answer.usage) == (["a"], "stop", Usage(3, 0, 1))


@pytest.mark.parametrize(
    "broken",
    [
        line(error={"code": 500, "message": "it broke"}),
        b'{"error": {"code": 500, "message": "it broke"}}\n',
        b'data: {"choices": \n',
    ],
)
def test_an_error_within_the_whole_answer_is_raised(broken: bytes) -> None:
    with pytest.raises(errors.ServerFailed):
        WholeAnswer().feed(line(**delta(content="a")) + broken)


def test_a_text_that_speaks_of_an_error_is_a_text() -> None:
    answer = WholeAnswer()
    answer.feed(line(**delta(content='an "error"')))
    assert answer.text == ['an "error"']
