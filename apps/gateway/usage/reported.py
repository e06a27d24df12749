"""Reads an answer's tokens from its first and last bytes, whichever API it is of. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from apps.llm.events import Usage

HEAD_BYTES = TAIL_BYTES = 4096
_COUNT = re.compile(
    rb'"(prompt_tokens|input_tokens|completion_tokens|output_tokens|cached_tokens|'
    rb"cache_read_input_tokens|cache_creation_input_tokens|prompt_n|cache_n|predicted_n|draft_n|draft_n_accepted)"
    rb'"\s*:\s*(\d{1,9})\b'
)
_RATE = re.compile(rb'"predicted_per_second"\s*:\s*(\d{1,6}(?:\.\d{1,20})?)\b')
_PREFILL = re.compile(rb'"prompt_ms"\s*:\s*(\d{1,9})\b')
_END = re.compile(rb'"finish_reason"\s*:\s*"(\w{1,40})"')
# Inside a JSON string a quotation mark has a backslash before it, so that these are keys.
_THOUGHT = re.compile(rb'"reasoning(?:_content)?"\s*:\s*"[^"]')
_CONTENT = re.compile(rb'"content"\s*:\s*"[^"]|"tool_calls"\s*:\s*\[\s*\{')
# Anthropic's streams count the prompt at their beginning. What they say there of the answer is not
# yet true.
_AT_BEGINNING = frozenset(
    {"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}
)


@dataclass(frozen=True, slots=True)
class ReportedTokens:
    """What a server says of an answer. None: not reported."""

    prompt: int | None = None
    """Those from the prompt cache included."""
    cached: int | None = None
    completion: int | None = None
    per_second: float | None = None
    drafted: int | None = None
    draft_accepted: int | None = None
    prefilled: int | None = None
    prefill_ms: int | None = None


def reported_tokens(tail: bytes, head: bytes = b"") -> ReportedTokens:
    """Return the tokens of an answer.

    Args:
        head, tail: the answer's first and last bytes; they may overlap.
    """
    early, late = _counts(head), _counts(tail)
    found = {name: count for name, count in early.items() if name in _AT_BEGINNING} | late
    rate, prefill = _RATE.search(tail), _PREFILL.search(tail)
    return ReportedTokens(
        _prompt(found.get),
        _first(found.get, "cache_n", "cached_tokens", "cache_read_input_tokens"),
        _first(found.get, "completion_tokens", "output_tokens", "predicted_n"),
        float(rate[1]) if rate else None,
        found.get("draft_n"),
        found.get("draft_n_accepted"),
        found.get("prompt_n"),
        int(prefill[1]) if prefill else None,
    )


def usage_in(tail: bytes, head: bytes = b"") -> Usage | None:
    """Return the tokens for a server's charts; None where the prompt's are not reported."""
    found = reported_tokens(tail, head)
    if found.prompt is None:
        return None
    return Usage(
        found.prompt,
        found.cached or 0,
        found.completion or 0,
        found.per_second,
        tells_cached=found.cached is not None,
        drafted=found.drafted or 0,
        draft_accepted=found.draft_accepted or 0,
        prefilled=found.prefilled or 0,
        prefill_ms=found.prefill_ms or 0,
    )


def is_only_thought(tail: bytes, head: bytes = b"") -> bool | None:
    """Return whether a chat answer used up its max tokens before it had any content.

    Content comes after the thought: the end of a stream has the last of it, and of a whole answer
    llama.cpp writes it before the thought. None: the end, or what came before it, is not seen.
    """
    data = head + tail
    ends = _END.findall(data)
    has_content, has_thought = _CONTENT.search(data), _THOUGHT.search(data)
    if not ends or not (has_content or has_thought):
        return None
    return ends[-1] == b"length" and not has_content


def _counts(data: bytes) -> dict[str, int]:
    return {name.decode(): int(count) for name, count in _COUNT.findall(data)}


def _prompt(count: Callable[[str], int | None]) -> int | None:
    prompt = _first(count, "prompt_tokens", "input_tokens")
    # Anthropic's counts, and llama.cpp's timings, leave out what came from the cache.
    if prompt is not None:
        written = count("cache_creation_input_tokens") or 0
        return prompt + (count("cache_read_input_tokens") or 0) + written
    read = count("prompt_n")
    return None if read is None else read + (count("cache_n") or 0)


def _first(count: Callable[[str], int | None], *names: str) -> int | None:
    return next((found for name in names if (found := count(name)) is not None), None)
