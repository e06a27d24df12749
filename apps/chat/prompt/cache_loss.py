"""How much of a prompt the server should have known, and why it did not. Pure.

The prompt of a turn begins with the prompt before it and the answer to that. If the server reads
much of this again, the first token is late by that much, and there is a reason that somebody can
do something about.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

# Below this share of what could have been reused it is a loss worth a sentence...
LOST_BELOW = 0.5
# ...if reading it again costs more than a moment.
WORTH_SAYING_TOKENS = 256
# llama-server chooses a slot by a common beginning of more than a tenth of the prompt (-sps).
SIMILAR = 0.10


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of one answer's request."""

    model: str
    system_prompt: int | None
    cut_before_message: int | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    at: datetime
    tools: str = ""
    """A hash of the tools that were offered."""
    front: tuple[object, ...] = ()
    """Summary and pins that stood in the place of what was cut."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Tokens that were read again, and why."""

    tokens: int
    reason: str


def loss(
    now: Asked,
    before: Asked | None,
    *,
    is_sibling: bool = False,
    others_with_same_prompt: bool = False,
    system_tokens: int = 0,
    sleeps_after: timedelta | None = None,
) -> Loss | None:
    """Why a prompt was read again that the server had read before; None if it was not.

    Args:
        before: the answer before it in the branch, or its sibling if it was answered again.
        is_sibling: `before` answered the same question, so its answer is not in this prompt.
        others_with_same_prompt: other conversations with the same system prompt were answered in
            between.
        system_tokens: of the system prompt, about.
        sleeps_after: the model is unloaded after so long without a request, where that is known.
    """
    if before is None:
        return None
    known = before.prompt_tokens + (0 if is_sibling else before.completion_tokens)
    known = min(known, now.prompt_tokens)
    lost = known - now.cached_tokens
    if lost < WORTH_SAYING_TOKENS or now.cached_tokens >= LOST_BELOW * known:
        return None
    return Loss(lost, _reason(now, before, others_with_same_prompt, system_tokens, sleeps_after))


def _reason(
    now: Asked,
    before: Asked,
    others_with_same_prompt: bool,
    system_tokens: int,
    sleeps_after: timedelta | None,
) -> str:
    if now.model != before.model:
        return f"another model answered: {now.model} instead of {before.model}"
    if now.cut_before_message != before.cut_before_message:
        return "the oldest messages were dropped to free context; later turns are fast again"
    if now.system_prompt != before.system_prompt:
        return "the system prompt changed, so everything after it was reprocessed"
    if now.tools != before.tools:
        return "the tools changed, so everything after them was reprocessed"
    if now.front != before.front:
        return "a pinned message or the summary changed, so everything after it was reprocessed"
    if sleeps_after is not None and now.at - before.at > sleeps_after:
        return "the model was unloaded in between"
    trap = others_with_same_prompt and now.cached_tokens <= max(2 * system_tokens, 64)
    if trap and now.cached_tokens > 0:
        return (
            "another conversation with the same system prompt took its slot; "
            "start llama-server with -sps 0.5 to end that"
        )
    if now.cached_tokens == 0:
        return "the server restarted, or other requests pushed this chat out of the prompt cache"
    return "other requests took the slot, and the server's prompt cache (--cache-ram) was full"


@dataclass(frozen=True, slots=True)
class Changing:
    """A part of a system prompt that will be different another time."""

    text: str
    why: str


MOST_CHANGING = 10
_PLACEHOLDER = re.compile(
    r"\{\{\s*([\w.]+)\s*\}\}|\{([A-Z_]{3,})\}|%(?:date|time|now)%", re.IGNORECASE
)
_DATE = re.compile(
    r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?\b"
    r"|\b(?:\d{1,2}(?:st|nd|rd|th)?\s+)?(?:January|February|March|April|May|June|July|August|"
    r"September|October|November|December)\s+(?:\d{1,2}(?:st|nd|rd|th)?,?\s+)?\d{4}\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:today(?:'s date)?|the current (?:date|time|day)|right now it) is\b[^.\n]{0,40}",
    re.IGNORECASE,
)


def changing_parts(text: str) -> list[Changing]:
    """Parts of a system prompt that people usually mean to change: dates, times, placeholders.

    Everything after the first changed byte is read again at every turn, in every conversation.
    """
    found: dict[str, Changing] = {}
    for part, why in _suspects(text):
        if not any(part in other for other in found):
            found[part] = Changing(part, why)
        if len(found) == MOST_CHANGING:
            break
    return list(found.values())


def _suspects(text: str) -> Iterator[tuple[str, str]]:
    for match in _PLACEHOLDER.finditer(text):
        yield match[0], "this is not replaced; the model sees it literally"
    for match in _NOW.finditer(text):
        yield match[0].strip(), "only true on the day it was written"
    for match in _DATE.finditer(text):
        yield match[0], "a date or time; if you mean today, put it in your message"
