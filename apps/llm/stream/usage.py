"""The tokens of an answer: as its server reports them, else estimated. Pure."""

import json
import math
from typing import Any

from apps.llm.chat_request import ChatRequest
from apps.llm.events import Usage

CHARACTERS_PER_TOKEN = 4


def parse_usage(chunk: dict[str, Any]) -> Usage | None:
    """Return what a chunk reports. None where a count is missing or null: that is no zero.

    llama.cpp sends `timings` also where it was not asked for usage.

    Raises:
        ValueError: a count that no server sends.
    """
    usage, timings = chunk.get("usage") or {}, chunk.get("timings") or {}
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens")
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if prompt is None or completion is None:
        if timings.get("prompt_n") is None or timings.get("predicted_n") is None:
            return None
        cached = count(timings.get("cache_n"))
        prompt, completion = cached + count(timings["prompt_n"]), timings["predicted_n"]
    speed = timings.get("predicted_per_second") or None
    return Usage(
        count(prompt),
        count(cached),
        count(completion),
        speed,
        tells_cached=cached is not None,
        drafted=count(timings.get("draft_n")),
        draft_accepted=count(timings.get("draft_n_accepted")),
        prefilled=count(timings.get("prompt_n")),
        prefill_ms=count(timings.get("prompt_ms")),
    )


def count(value: Any) -> int:
    """Return a count; 0 where the server sends null or nothing."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(value)
    return int(value)


def estimate_usage(request: ChatRequest, text: list[str], reasoning: list[str]) -> Usage:
    """Estimate the tokens of an answer whose server reports none.

    Args:
        text, reasoning: the pieces in which they came, usually a token each.
    """
    sent = [request.messages, request.tools or ""]
    pieces = text + reasoning
    written = max(len(pieces), _tokens(sum(map(len, pieces))))
    prompt = _tokens(len(json.dumps(sent, ensure_ascii=False)))
    return Usage(prompt, 0, written, tells_cached=False, is_estimated=True)


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
