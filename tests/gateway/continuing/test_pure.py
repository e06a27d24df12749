"""The parts of an answer, without a server."""

from typing import Any

import pytest

from apps.gateway.batches.batch_spec import BatchSpec, loses_work
from apps.gateway.continuing.chunks import Chunk, beginning_of, read_chunks, whole_answer
from apps.gateway.continuing.join import Written, joined
from apps.gateway.continuing.shape import CHAT, COMPLETIONS, continued
from apps.llm import errors


def event(text: str, **others: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": others.pop("end", None)}
    chunk = Chunk({"id": "x", "choices": [choice], **others}, text, is_plain=True)
    return chunk.as_event()


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (["One", " two", " thr", "ee"], "One two"),
        (["One", " ", "two", "  "], "One two"),
        (["Straßen", "bahn"], "Straßenbahn"),
        (["  ", "\n"], ""),
        ([], ""),
    ],
)
def test_a_beginning_ends_with_a_word(texts: list[str], kept: str) -> None:
    chunks = read_chunks(event(text) for text in texts)
    assert "".join(chunk.text for chunk in beginning_of(chunks)) == kept


def test_a_line_without_its_end_is_no_chunk() -> None:
    whole = event("One") + event(" two")
    assert [chunk.text for chunk in read_chunks([whole[:20], whole[20:-5]])] == ["One"]


def test_an_error_among_the_chunks_is_one() -> None:
    with pytest.raises(errors.LLMError, match="out of memory"):
        read_chunks([event("One"), b'data: {"error":{"message":"out of memory"}}\n\n'])
    with pytest.raises(errors.ServerFailed):
        read_chunks([b"data: 5\n\n"])


def test_an_answer_without_its_end_is_cut_off() -> None:
    with pytest.raises(errors.CutOff):
        whole_answer(read_chunks([event("One")]))


def test_two_parts_are_counted_as_one_answer() -> None:
    kept = Written(read_chunks([event("One two three four five")]), 5, 2.0)
    details = {"cached_tokens": 13}
    usage = {"prompt_tokens": 15, "completion_tokens": 3, "prompt_tokens_details": details}
    timings = {"predicted_n": 3, "predicted_ms": 400.0}
    rest = [
        event("One two three four five six"),  # as builds do that write the beginning once more
        event("", id="y", end="stop", usage=usage, timings=timings),
    ]
    chunks = kept.chunks + joined(kept, read_chunks(rest))
    answer: Any = whole_answer(chunks)
    assert answer["choices"][0]["message"]["content"] == "One two three four five six"
    assert (answer["id"], answer["choices"][0]["finish_reason"]) == ("x", "stop")
    details = {"cached_tokens": 10}
    counted = {"prompt_tokens": 10, "completion_tokens": 8, "prompt_tokens_details": details}
    assert answer["usage"] == counted
    assert (answer["timings"]["predicted_n"], answer["timings"]["predicted_ms"]) == (8, 2400.0)
    assert answer["timings"]["predicted_per_token_ms"] == 300.0


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": "many"}])
def test_who_counts_in_another_way_does_not_go_on(usage: dict[str, Any]) -> None:
    kept = Written(read_chunks([event("One")]), 1)
    with pytest.raises(errors.NotSupported):
        joined(kept, read_chunks([event("", end="stop", usage=usage | {"x": 1})]))


def test_the_rest_is_what_is_left() -> None:
    fields = {"prompt": "a", "max_tokens": 10}
    assert continued(COMPLETIONS, fields, "b", 4) == {"prompt": "ab", "max_tokens": 6}
    assert continued(COMPLETIONS, {"prompt": "a"}, "b", 4) == {"prompt": "ab"}
    assert continued(COMPLETIONS, {**fields, "max_tokens": -1}, "b", 4)["max_tokens"] == -1
    for unknown in ({"max_tokens": 4}, {"n_predict": 9}, {"max_tokens": True}):
        with pytest.raises(ValueError, match="tokens"):
            continued(COMPLETIONS, {**fields, **unknown}, "b", 4)


@pytest.mark.parametrize(
    ("body", "loses"),
    [
        ({"messages": [{"role": "user", "content": "a"}]}, False),
        (
            {"messages": [{"role": "user", "content": "a"}], "json_schema": {"type": "object"}},
            False,
        ),
        ({"messages": [{"role": "user", "content": "a"}], "grammar": 'root ::= "a"'}, True),
        ({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function"}]}, True),
        (None, True),
    ],
)
def test_rows_of_a_batch_that_would_begin_again(body: Any, loses: bool) -> None:
    spec = BatchSpec(1, CHAT, 10, 0.0)
    assert loses_work({"custom_id": "a", "body": body}, spec) is loses
