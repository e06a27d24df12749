"""The chunks of a streamed answer: what each adds to its text, and how they are written. Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from apps.core.schemas.json_types import JsonObject
from apps.llm import errors
from apps.llm.client import classify_failure

DONE = b"data: [DONE]\n\n"
# Of an answer that was cut, fewer characters are written again: that costs nothing.
MIN_CHARACTERS = 20
# So many chunks at most are dropped to end between two words.
MAX_DROPPED = 16


@dataclass(frozen=True, slots=True)
class Chunk:
    data: dict[str, Any]
    text: str
    is_plain: bool
    """It has nothing but text: no thought, no tool call."""

    @property
    def is_last(self) -> bool:
        choices: list[dict[str, Any]] = self.data.get("choices") or []
        return bool(choices) and choices[0].get("finish_reason") is not None

    @property
    def ends_by_itself(self) -> bool:
        """True if the model ended the answer here, or a stop sequence."""
        return self.is_last and self.data["choices"][0]["finish_reason"] == "stop"

    def as_event(self) -> bytes:
        """Return it as llama-server writes it."""
        return b"data: " + json_bytes(self.data) + b"\n\n"


def is_json(text: str) -> bool:
    """True if the text is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def json_bytes(data: object) -> bytes:
    """Return JSON as llama-server writes it, without spaces."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def read_chunks(pieces: Iterable[bytes]) -> list[Chunk]:
    """Return the chunks that are complete.

    Raises:
        LLMError: the server wrote an error among them, or something else than chunks.
    """
    lines = b"".join(pieces).split(b"\n")[:-1]
    payloads = (line[5:].strip() for line in lines if line.startswith(b"data:"))
    try:
        return [_chunk(json.loads(one)) for one in payloads if one != b"[DONE]"]
    except (ValueError, RecursionError, TypeError, AttributeError, LookupError) as error:
        detail = "The model server sent a reply that is not valid JSON."
        raise errors.ServerFailed(detail) from error


def _chunk(data: dict[str, Any]) -> Chunk:
    if data.get("error") is not None:
        raise classify_failure(None, data)
    choices = data.get("choices") or ()
    if not choices:
        return Chunk(data, "", is_plain=True)
    choice = choices[0]
    delta = choice.get("delta")
    if delta is None:
        return Chunk(data, choice.get("text") or "", is_plain=len(choices) == 1)
    others = [name for name, value in delta.items() if value and name not in ("content", "role")]
    return Chunk(data, delta.get("content") or "", is_plain=len(choices) == 1 and not others)


def with_text(chunk: Chunk, text: str) -> Chunk:
    """Return the chunk with another text in it."""
    choice = dict(chunk.data["choices"][0])
    if "delta" in choice:
        choice["delta"] = {**choice["delta"], "content": text}
    else:
        choice["text"] = text
    return Chunk({**chunk.data, "choices": [choice]}, text, chunk.is_plain)


def beginning_of(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks from which a server can go on: up to the end of a word where there is one.

    A chunk is a token. Chat templates strip the end of a message, and a tokenizer reads the start
    of a word as another token than the whole: both would change what comes next.
    """
    if not all(chunk.is_plain for chunk in chunks):
        return []
    first = next((at for at, chunk in enumerate(chunks) if chunk.text), len(chunks))
    ends = [
        at
        for at in range(first + 1, len(chunks) + 1)
        if chunks[at - 1].text and chunks[at - 1].text.rstrip() == chunks[at - 1].text
    ]
    if not ends:
        return []
    near = [at for at in ends if at >= len(chunks) - MAX_DROPPED]
    words = [at for at in near if at < len(chunks) and chunks[at].text[:1].isspace()]
    return list(chunks[: (words or ends)[-1]])


def whole_answer(chunks: Sequence[Chunk]) -> JsonObject:
    """Return the answer that a server gives where it does not stream.

    Raises:
        CutOff: its end is missing.
    """
    last = next((chunk.data for chunk in chunks if chunk.is_last), None)
    if last is None:
        raise errors.CutOff(errors.CUT_OFF)
    choice = dict(last["choices"][0])
    text = "".join(chunk.text for chunk in chunks)
    if "delta" in choice:
        del choice["delta"]
        choice["message"] = {"role": "assistant", "content": text}
        if thought := "".join(map(_thought, chunks)):
            choice["message"]["reasoning_content"] = thought
        kind = "chat.completion"
    else:
        choice["text"], kind = text, "text_completion"
    counted = {name: chunk.data[name] for chunk in chunks for name in COUNTS if name in chunk.data}
    known = {name: value for name, value in last.items() if name not in COUNTS}
    return {**known, "choices": [choice], "object": kind, **counted}


COUNTS = ("usage", "timings")


def _thought(chunk: Chunk) -> str:
    choices = chunk.data.get("choices")
    return choices[0].get("delta", {}).get("reasoning_content") or "" if choices else ""
