"""Questions and replies of a row as one stored text, and back (pure)."""

import json
from collections.abc import Sequence
from typing import Any

from apps.generation.recipe.recipe import Recipe

LIST = "\x1e"  # begins a list where one text is usual (RFC 7464 begins JSON with it)
AGAIN = "again"  # marks a question about the answer to the one before


def join_texts(recipe: Recipe, texts: Sequence[Any]) -> str:
    """Store one text unchanged; several, or those of a conversation, as a JSON list."""
    if recipe.is_conversation:
        return json.dumps(texts, ensure_ascii=False) if texts else ""
    if len(texts) == 1 and isinstance(texts[0], str) and not texts[0].startswith(LIST):
        return texts[0]
    return LIST + json.dumps(texts, ensure_ascii=False) if texts else ""


def _parse(recipe: Recipe, kept: str) -> list[Any]:
    """Parse a text made by `join_texts`."""
    if not kept:
        return []
    if not recipe.is_conversation and not kept.startswith(LIST):
        return [kept]
    try:
        parts = json.loads(kept.removeprefix(LIST))
    except ValueError:  # a text of ours that was cut on the way
        return [kept]
    return parts if isinstance(parts, list) else [kept]


def split_texts(recipe: Recipe, kept: str) -> list[str]:
    """The questions or the replies of a row, from its `prompt` or its `raw`."""
    parts = _parse(recipe, kept)
    return [str(part[AGAIN] if isinstance(part, dict) else part) for part in parts]


def repeated_questions(recipe: Recipe, prompt: str) -> list[bool]:
    """Mark each question that repeats the one before because of an unreadable answer."""
    return [isinstance(part, dict) for part in _parse(recipe, prompt)]


def used_replies(recipe: Recipe, prompt: str, raw: str) -> list[str]:
    """The replies of a row, of a question that was asked a second time the second one."""
    replies = split_texts(recipe, raw)
    again = repeated_questions(recipe, prompt)[1:]
    return [reply for at, reply in enumerate(replies) if not (at < len(again) and again[at])]
