"""Joins the parts of an answer into one, as if it had never been cut. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from apps.gateway.continuing.chunks import Chunk, with_text
from apps.llm import errors


@dataclass(slots=True)
class Written:
    """The beginning of an answer."""

    chunks: list[Chunk] = field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks)


def joined(kept: Written, rest: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks that go on with a beginning, as chunks of the same answer.

    Raises:
        NotSupported: they do not go on with it: they think first, or count in another way.
    """
    chunks = [chunk for chunk in rest if "prompt_progress" not in chunk.data]
    if not kept.chunks:
        return chunks
    try:
        return _rest(kept, chunks)
    except (ValueError, TypeError, KeyError) as error:
        raise errors.NotSupported("The model server did not go on with its answer.") from error


def _rest(kept: Written, chunks: list[Chunk]) -> list[Chunk]:
    if not all(chunk.is_plain for chunk in chunks):
        raise ValueError
    first = kept.chunks[0].data
    own: dict[str, Any] = {name: first[name] for name in ("id", "created") if name in first}
    found, is_first = [], True
    for chunk in chunks:
        if chunk.text and is_first:
            is_first = False
            # Some builds write the beginning once more.
            chunk = with_text(chunk, chunk.text.removeprefix(kept.text))
        if chunk.text or chunk.is_last or not chunk.data.get("choices"):
            found.append(replace(chunk, data=_as_one({**chunk.data, **own}, kept)))
    return found


def _as_one(data: dict[str, Any], kept: Written) -> dict[str, Any]:
    """Add to a chunk's counts what was written before."""
    counts: dict[str, Any] = {}
    if isinstance(usage := data.get("usage"), dict):
        counts["usage"] = _usage(usage, kept)
    if isinstance(timings := data.get("timings"), dict):
        counts["timings"] = _timings(timings, kept)
    return {**data, **counts}


def _usage(usage: dict[str, Any], kept: Written) -> dict[str, Any]:
    """Return what the whole answer came to: its beginning is no part of the prompt."""
    prompt = usage["prompt_tokens"] - kept.tokens
    found = {
        **usage,
        "prompt_tokens": prompt,
        "completion_tokens": usage["completion_tokens"] + kept.tokens,
    }
    details = usage.get("prompt_tokens_details")
    if isinstance(details, dict) and isinstance(cached := details.get("cached_tokens"), int):
        found["prompt_tokens_details"] = {**details, "cached_tokens": min(cached, prompt)}
    return found


def _timings(timings: dict[str, Any], kept: Written) -> dict[str, Any]:
    """Return the times of both parts together; what was read for the second stays as it is."""
    found = dict(timings)
    tokens = found["predicted_n"] = timings["predicted_n"] + kept.tokens
    ms = found["predicted_ms"] = round(timings["predicted_ms"] + 1000 * kept.seconds, 3)
    if tokens and ms:
        found |= {"predicted_per_token_ms": ms / tokens, "predicted_per_second": 1000 * tokens / ms}
    return found
