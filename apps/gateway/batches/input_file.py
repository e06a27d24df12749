"""Reads the lines of an OpenAI batch file: one request a line, or what is wrong with it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from apps.core.api import ApiError
from apps.core.http.json_bodies import read as read_json
from apps.core.schemas.json_types import JsonObject
from apps.gateway.program_request import ProgramRequest
from apps.llm.permits import Lane

ENDPOINTS = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses")
# As many as OpenAI takes.
MAX_REQUESTS = 50_000
MAX_LINE_MB = 11  # as of a body
MAX_LINE_BYTES = MAX_LINE_MB * 1024**2
MAX_CUSTOM_ID = 512
MAX_ERRORS = 100
PIECE_BYTES = 256 * 1024
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class BatchRequest:
    custom_id: str
    body: JsonObject
    size: int
    """Of its line, in bytes."""


@dataclass(frozen=True, slots=True)
class LineError:
    """What is wrong with a line, or with the whole file where `line` is None."""

    code: str
    message: str
    line: int | None = None
    param: str | None = None


class BatchFileInvalid(Exception):
    """The file cannot be run. At most MAX_ERRORS errors are listed."""

    def __init__(self, errors: list[LineError]) -> None:
        super().__init__(errors[0].message)
        self.errors = errors


@dataclass(slots=True)
class FileSummary:
    """What all requests of a file have in common."""

    model: str = ""
    requests: int = 0
    max_tokens: int = 0
    """The most that one request may come to, prompt and answer, about."""


def check_file(file: BinaryIO, endpoint: str) -> FileSummary:
    """Read a whole file.

    Raises:
        BatchFileInvalid: a line cannot be sent, or there is none.
    """
    lines = LineReader(endpoint)
    errors: list[LineError] = []
    for found in lines.read(file):
        if isinstance(found, LineError):
            errors.append(found)
            if len(errors) >= MAX_ERRORS:
                break
    if not errors and not lines.summary.requests:
        errors.append(LineError("empty_file", "The file has no requests. Write one a line."))
    if errors:
        raise BatchFileInvalid(errors)
    return lines.summary


@dataclass(slots=True)
class LineReader:
    """Reads requests to one endpoint. Knows the lines before: names are unique, models equal."""

    endpoint: str
    summary: FileSummary = field(default_factory=FileSummary)
    _lines_by_id: dict[bytes, int] = field(default_factory=dict)

    def read(self, file: BinaryIO) -> Iterator[BatchRequest | LineError]:
        """Yield a request or an error for each line that is not blank."""
        for number, line in _numbered_lines(file):
            if line is None:
                detail = f"The line is longer than {MAX_LINE_MB} MB. Shorten the request."
                yield LineError("line_too_long", detail, number)
            elif self.summary.requests >= MAX_REQUESTS:
                detail = f"The file has more than {MAX_REQUESTS:,} requests. Split it."
                yield LineError("too_many_requests", detail, number)
                return
            else:
                self.summary.requests += 1
                yield self._request(line, number)

    def _request(self, line: bytes, number: int) -> BatchRequest | LineError:
        try:
            found = read_json(line, "line")
        except ApiError as error:
            return LineError("invalid_json_line", str(error), number)
        if not isinstance(found, dict):
            return LineError("invalid_json_line", "The line is JSON, but not an object.", number)
        wrong = self._wrong_id(found.get("custom_id"), number) or self._wrong_request(found)
        if wrong is not None:
            param, code, detail = wrong
            return LineError(code, detail, number, param)
        bound = ProgramRequest(self.endpoint, line, found["body"], Lane.BATCH, "").token_bound
        self.summary.max_tokens = max(self.summary.max_tokens, bound)
        return BatchRequest(found["custom_id"], found["body"], len(line))

    def _wrong_id(self, custom_id: Any, number: int) -> tuple[str, str, str] | None:
        """Return the field, the code and the sentence of what is wrong; None if nothing is."""
        if not isinstance(custom_id, str) or not 1 <= len(custom_id) <= MAX_CUSTOM_ID:
            detail = f"`custom_id` is a text of 1 to {MAX_CUSTOM_ID} characters."
            return "custom_id", "invalid_custom_id", detail
        digest = hashlib.blake2b(custom_id.encode(), digest_size=16).digest()
        first = self._lines_by_id.setdefault(digest, number)
        if first == number:
            return None
        detail = f"Line {first} has the same `custom_id`. Give each request its own."
        return "custom_id", "duplicate_custom_id", detail

    def _wrong_request(self, found: dict[str, Any]) -> tuple[str, str, str] | None:
        if found.get("method") != "POST":
            return "method", "invalid_method", "`method` is not “POST”."
        if found.get("url") != self.endpoint:
            detail = f"`url` is not {self.endpoint}, the endpoint of the batch."
            return "url", "mismatched_endpoint", detail
        if not isinstance(found.get("body"), dict):
            return "body", "invalid_body", "`body` is not an object. Write the request there."
        return self._wrong_body(found["body"])

    def _wrong_body(self, body: dict[str, Any]) -> tuple[str, str, str] | None:
        model = body.get("model")
        if not isinstance(model, str) or not model:
            return "body.model", "invalid_model", "`body.model` does not name a model."
        self.summary.model = self.summary.model or model
        if model != self.summary.model:
            detail = f"Another line names “{self.summary.model[:100]}”. A batch has one model."
            return "body.model", "mismatched_model", detail
        if body.get("stream"):
            detail = "Answers of a batch are not streamed. Leave `stream` out."
            return "body.stream", "stream_not_supported", detail
        return None


def _numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines that are not blank, counted from 1; None for one that is too long."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            _skip_line(file)
            yield number, None
        elif text := (line.removeprefix(BOM) if number == 1 else line).strip():
            yield number, text


def _skip_line(file: BinaryIO) -> None:
    while (piece := file.readline(PIECE_BYTES)) and not piece.endswith(b"\n"):
        pass
