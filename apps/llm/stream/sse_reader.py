"""Decodes a chat stream: bytes as they arrive in, typed events out. Pure."""

import json
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from apps.llm import errors
from apps.llm.events import Done, Event, Progress, Reasoning, Token, ToolCall, Usage
from apps.llm.failures.classify import classify_failure
from apps.llm.stream.usage import count, parse_usage

NOT_A_CHUNK = "The model server wrote something into its answer that is no part of one."


class ChunkReader:
    """Decodes server-sent events, wherever the network cut the stream.

    reader = ChunkReader()
    for data in arriving:
        for event in reader.feed(data): ...
    """

    def __init__(self, rest: bytes = b"") -> None:
        self._rest = rest
        self.completion_id = ""
        """The server's name for the answer, once a chunk has it."""

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete now.

        Raises:
            LLMError: the server wrote an error into the stream, with or without `data:` before it.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        found: list[Event] = []
        for line in lines:
            if line.startswith((b"data: {", b"data:{")):
                chunk = _decoded(line[5:])
                self.completion_id = self.completion_id or str(chunk.get("id") or "")
                _add_events(found, chunk)
            elif line.startswith((b"{", b"error: ")):
                # A proxy whose model failed to load writes a bare JSON line; an old llama-server
                # its own kind of event.
                raise classify_failure(None, _lenient(line.removeprefix(b"error: ")))
        return found

    def end(self) -> list[Event]:
        """Return the events of a last line without an end; none where the line was cut off."""
        if self._rest.startswith(b"data") and not _is_whole(self._rest[5:]):
            self._rest = b""
        return self.feed(b"\n")


class WholeAnswer:
    """Collects an answer that nobody watches: its chunks are decoded many at once."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.usage: Usage | None = None
        """None where the server reports none."""
        self.finish_reason = ""
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Add the chunks that are complete now.

        Raises:
            LLMError: the server wrote an error into the stream.
        """
        whole, _, self._rest = (self._rest + data).rpartition(b"\n")
        lines = whole.split(b"\n")
        chunks = [line[5:] for line in lines if line.startswith((b"data: {", b"data:{"))]
        # Errors are read line by line: in their own words, and after the events before them.
        decoded = None
        if b"error" not in whole:
            with suppress(ValueError, RecursionError):
                decoded = json.loads(b"[" + b",".join(chunks) + b"]")
        if decoded is not None:
            for chunk in decoded:
                self._add(chunk)
            return
        self._add_events(ChunkReader().feed(whole + b"\n"))

    def end(self) -> None:
        """Add a last line without an end; nothing where the line was cut off."""
        reader, self._rest = ChunkReader(self._rest), b""
        self._add_events(reader.end())

    def _add(self, chunk: dict[str, Any]) -> None:
        match chunk:
            case {
                "choices": [{"delta": {"content": str(text), **rest}, "finish_reason": None}]
            } if not rest and not chunk.get("usage"):
                self.text.append(text)  # nearly all of them
            case _:
                events: list[Event] = []
                _add_events(events, chunk)
                self._add_events(events)

    def _add_events(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Token():
                    self.text.append(event.text)
                case Reasoning():
                    self.reasoning.append(event.text)
                case Usage():
                    self.usage = event
                case Done():
                    self.finish_reason = event.finish_reason


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        data = _parse(line)
    except (ValueError, RecursionError) as error:
        raise errors.ServerFailed(
            "The model server sent a reply that is not valid JSON."
        ) from error
    if not isinstance(data, dict):
        raise errors.ServerFailed(NOT_A_CHUNK)
    if data.get("error") is not None:
        raise classify_failure(None, data)
    return data


def _parse(line: bytes) -> Any:
    """Return the value of a line of JSON: by pydantic's reader, in a third of the time of `json`.

    What that refuses and `json` reads is half of a surrogate pair, where a token cut a character.
    """
    try:
        return from_json(line)
    except ValueError:
        return json.loads(line)


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _lenient(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line.decode(errors="replace")


def _add_events(found: list[Event], data: dict[str, Any]) -> None:
    """Append the events of one chunk. Fields may be missing, and unknown ones may occur.

    Raises:
        ServerFailed: a field has a value that no server sends.
    """
    try:
        _read_chunk(found, data)
    except (TypeError, ValueError, AttributeError) as error:
        raise errors.ServerFailed(NOT_A_CHUNK) from error


def _read_chunk(found: list[Event], data: dict[str, Any]) -> None:
    if progress := data.get("prompt_progress"):
        found.append(
            Progress(*(count(progress.get(name)) for name in ("total", "cache", "processed")))
        )
    for choice in data.get("choices") or ():
        delta = choice.get("delta") or {}
        # Progress of loading that a proxy streams as reasoning has no id. llama.cpp and DeepSeek
        # use the first name, Ollama, vLLM and OpenRouter the second.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if reasoning and data.get("id"):
            found.append(Reasoning(_text(reasoning)))
        if content := delta.get("content"):
            found.append(Token(_text(content)))
        if calls := delta.get("tool_calls"):
            found.extend(ToolCall(call) for call in calls)
        if reason := choice.get("finish_reason"):
            found.append(Done(_text(reason)))
    if (usage := parse_usage(data)) is not None:
        found.append(usage)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
