"""The lines of a chat stream, without a server."""

import itertools
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.llm import errors
from apps.llm.events import Done, Event, Progress, Reasoning, Token, ToolCall, Usage
from apps.llm.stream.sse_reader import ChunkReader, WholeAnswer


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
def test_chunk_reader_reads_the_same_however_the_stream_is_cut(size: int) -> None:
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
def test_feed_raises_errors_in_the_stream(data: bytes) -> None:
    with pytest.raises(errors.ServerFailed, match="Compute error"):
        ChunkReader().feed(data)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_feed_reads_both_names_of_a_thought(field: str) -> None:
    data = line(**delta(**{field: "hm"}))
    assert ChunkReader().feed(data) == [Reasoning("hm")]
    answer = WholeAnswer()
    answer.feed(data)
    assert answer.reasoning == ["hm"]


@pytest.mark.parametrize("whole", [False, True])
def test_an_error_that_is_null_is_none(whole: bool) -> None:
    data = line(**delta(content="a"), error=None, usage=None)
    answer = WholeAnswer()
    answer.feed(data)
    assert (answer.text, ChunkReader().feed(data)) == (["a"], [Token("a")])


def test_null_counts_are_not_reported() -> None:
    usage = {"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None}
    assert ChunkReader().feed(line(choices=[], usage=usage)) == []


def test_a_last_line_may_have_no_end() -> None:
    for data in (line(**delta("stop")).rstrip(), b'{"error": {"message": "Broken."}}'):
        reader, answer = ChunkReader(), WholeAnswer()
        assert reader.feed(data) == []
        answer.feed(data)
        if data.startswith(b"data"):
            assert reader.end() == [Done("stop")]
            answer.end()
            assert answer.finish_reason == "stop"
            continue
        for end in (reader.end, answer.end):
            with pytest.raises(errors.ServerFailed, match="Broken"):
                end()


def test_a_line_that_broke_off_says_nothing() -> None:
    reader, answer = ChunkReader(), WholeAnswer()
    answer.feed(b'data: {"choices": [{"del')
    answer.end()
    assert reader.feed(b'data: {"choices": [{"del') == reader.end() == []
    assert answer.finish_reason == ""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "choices",
                        "delta",
                        "content",
                        "reasoning",
                        "usage",
                        "error",
                        "message",
                        "id",
                    ),
                    *("prompt_tokens", "prompt_tokens_details", "timings", "prompt_progress"),
                    *("tool_calls", "finish_reason", "code", "cached_tokens", "total"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_feed_takes_any_json_as_an_answer_or_raises_an_error(value: Any) -> None:
    data = b"data: " + json.dumps(value).encode() + b"\n\n"
    for feed in (ChunkReader().feed, WholeAnswer().feed):
        with suppress(errors.LLMError):
            feed(data)


def test_feed_raises_server_failed_for_broken_json() -> None:
    with pytest.raises(errors.ServerFailed, match="not valid JSON"):
        ChunkReader().feed(b'data: {"choices": [\n')


@pytest.mark.parametrize("size", [1, 7, 100, len(WHOLE)])
def test_the_whole_answer_is_the_sum_of_its_events(size: int) -> None:
    answer = WholeAnswer()
    for start in range(0, len(WHOLE), size):
        answer.feed(WHOLE[start : start + size])
    answer.end()
    assert ("".join(answer.text), "".join(answer.reasoning)) == ("é ", "hm")
    assert (answer.finish_reason, answer.usage) == ("stop", Usage(9, 0, 2))


def test_unterminated_line_and_usage_with_text_are_read() -> None:
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


PIECES = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [
            *(b"data: ", b"data:{", b"\n", b"\r\n", b'{"choices"', b"error: ", b": ping\n"),
            b'data: {"usage": {"prompt_tokens": Infinity, "completion_tokens": 1e400}}\n',
            b'data: {"choices": ' + b"[" * 50_000 + b"\n",
            b'{"error": {"code": "' + b"4" * 5_000 + b'"}}\n',
        ]
    ),
)


@given(st.lists(PIECES, max_size=8))
def test_any_bytes_are_events_or_an_error(pieces: list[bytes]) -> None:
    for reader in (ChunkReader(), WholeAnswer()):
        with suppress(errors.LLMError):
            for data in pieces:
                reader.feed(data)
            reader.end()


DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.none() | st.text(max_size=5),
        "reasoning_content": st.none() | st.text(max_size=5),
    },
)


@given(st.lists(DELTAS, max_size=5), st.lists(st.integers(0, 900), max_size=6))
def test_both_readers_read_the_same_text_wherever_the_stream_is_cut(
    deltas: list[dict[str, Any]], cuts: list[int]
) -> None:
    stream = b"".join(line(**delta(**fields)) for fields in deltas) + line(**delta("stop"))
    places = [0, *sorted(cuts), len(stream)]
    reader, whole, events = ChunkReader(), WholeAnswer(), []
    for start, end in itertools.pairwise(places):
        events += reader.feed(stream[start:end])
        whole.feed(stream[start:end])
    text = "".join(event.text for event in events if isinstance(event, Token))
    thought = "".join(event.text for event in events if isinstance(event, Reasoning))
    assert text == "".join(whole.text) == "".join(found.get("content") or "" for found in deltas)
    assert thought == "".join(whole.reasoning)
    assert whole.finish_reason == "stop"


def test_a_token_that_ends_in_half_a_surrogate_pair_is_read() -> None:
    assert ChunkReader().feed(line(**delta(content="a\ud83d"))) == [Token("a\ud83d")]
