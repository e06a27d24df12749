"""Reads an answer's tokens from its end, whichever API it is of. Pure."""

import re

from apps.llm.events import Usage

TAIL_BYTES = 4096
_COUNT = re.compile(
    rb'"(prompt_tokens|input_tokens|completion_tokens|output_tokens|cached_tokens|'
    rb'cache_read_input_tokens|prompt_n|cache_n|predicted_n)"\s*:\s*(\d{1,9})\b'
)
_RATE = re.compile(rb'"predicted_per_second"\s*:\s*(\d{1,6}(?:\.\d{1,20})?)\b')


def usage_in(tail: bytes) -> Usage | None:
    """Return the tokens that the last bytes of an answer report; None where they report none."""
    found = {name.decode(): int(count) for name, count in _COUNT.findall(tail)}
    cached = _first(found, "cache_n", "cached_tokens", "cache_read_input_tokens")
    prompt = _first(found, "prompt_tokens", "input_tokens")
    if prompt is None and "prompt_n" in found:  # llama.cpp counts what it read, without the cache
        prompt = found["prompt_n"] + (cached or 0)
    if prompt is None:
        return None
    written = _first(found, "completion_tokens", "output_tokens", "predicted_n")
    rate = _RATE.search(tail)
    return Usage(
        prompt,
        cached or 0,
        written or 0,
        float(rate[1]) if rate else None,
        tells_cached=cached is not None,
    )


def _first(found: dict[str, int], *names: str) -> int | None:
    return next((found[name] for name in names if name in found), None)
