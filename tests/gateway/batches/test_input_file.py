"""Batch files as programs write them, and as they should not be."""

import io
import json
import tracemalloc
from typing import Any

import pytest

from apps.gateway.batches import input_file
from apps.gateway.batches.input_file import (
    BatchFileInvalid,
    BatchRequest,
    FileSummary,
    LineError,
    LineReader,
    check_file,
)
from apps.gateway.program_request import USUAL_TOKENS

CHAT = "/v1/chat/completions"
BODY: Any = {"model": "tiny", "messages": [{"role": "user", "content": "Grüße"}]}


def line(custom_id: Any = "a", **values: Any) -> bytes:
    fields = {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": BODY, **values}
    return json.dumps(fields).encode() + b"\n"


def errors_of(content: bytes) -> list[LineError]:
    with pytest.raises(BatchFileInvalid) as invalid:
        check_file(io.BytesIO(content), CHAT)
    return invalid.value.errors


def test_a_file_is_read_in_order() -> None:
    content = b"\xef\xbb\xbf" + line("a") + b"\r\n" + line("b").rstrip()
    summary = check_file(io.BytesIO(content), CHAT)
    assert summary == FileSummary("tiny", 2, summary.max_tokens)
    assert summary.max_tokens > USUAL_TOKENS
    found = list(LineReader(CHAT).read(io.BytesIO(content)))
    size = len(line("a")) - 1
    assert found == [BatchRequest("a", BODY, size), BatchRequest("b", BODY, size)]


@pytest.mark.parametrize(
    ("content", "code", "param", "says"),
    [
        (b"", "empty_file", None, "no requests"),
        (b"\n \n", "empty_file", None, "no requests"),
        (b"\x89PNG\xff\x00\xfe", "invalid_json_line", None, "The line is not in UTF-8"),
        (b"{'custom_id': 1}", "invalid_json_line", None, "cannot be read as JSON"),
        (b"[1]", "invalid_json_line", None, "not an object"),
        (b'{"a":' + b"[" * 100_000, "invalid_json_line", None, "more than 100 lists"),
        (
            line(body={**BODY, "top_k": [[0]]}).replace(b"0", b"1e999"),
            *("invalid_json_line", None, "too large"),
        ),
        (line(body={**BODY, "stop": "\0"}), "invalid_json_line", None, "body.stop has a character"),
        (line(7), "invalid_custom_id", "custom_id", "1 to 512 characters"),
        (line(""), "invalid_custom_id", "custom_id", "1 to 512 characters"),
        (line("x" * 513), "invalid_custom_id", "custom_id", "1 to 512 characters"),
        (line(method="GET"), "invalid_method", "method", "POST"),
        (line(url="/v1/embeddings"), "mismatched_endpoint", "url", "not /v1/chat/completions"),
        (line(url=["/v1"]), "mismatched_endpoint", "url", "not /v1/chat/completions"),
        (line(body=[]), "invalid_body", "body", "not an object"),
        (line(body={}), "invalid_model", "body.model", "does not name"),
        (line(body={**BODY, "stream": True}), "stream_not_supported", "body.stream", "Leave"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    content: bytes, code: str, param: str | None, says: str
) -> None:
    [error] = errors_of(content)
    assert (error.code, error.param) == (code, param)
    assert says in error.message
    assert error.line == (None if code == "empty_file" else 1)


def test_lines_are_compared_with_those_before() -> None:
    other = line("c", body={**BODY, "model": "large"})
    twice, mismatched = errors_of(line("a") + b"\n" + line("b") + line("a") + other)
    assert (twice.code, twice.line) == ("duplicate_custom_id", 4)
    assert "Line 1 has the same" in twice.message
    assert (mismatched.code, mismatched.line) == ("mismatched_model", 5)
    assert "“tiny”" in mismatched.message


def test_a_very_long_line_is_not_read_into_memory() -> None:
    content = io.BytesIO(b"x" * 100 * 1024**2 + b"\n" + line(7))
    tracemalloc.start()
    with pytest.raises(BatchFileInvalid) as invalid:
        check_file(content, CHAT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    long, wrong = invalid.value.errors
    assert (long.code, long.line, wrong.line) == ("line_too_long", 1, 2)
    assert peak < 40 * 1024**2


def test_requests_and_errors_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(errors_of(b"{}\n" * 1000)) == input_file.MAX_ERRORS
    monkeypatch.setattr(input_file, "MAX_REQUESTS", 2)
    [error] = errors_of(line("a") + line("b") + line("c") + line("d"))
    assert (error.code, error.line) == ("too_many_requests", 3)
