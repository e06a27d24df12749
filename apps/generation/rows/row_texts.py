"""Questions and replies of a row as one stored text, and back (pure)."""

import json
from collections.abc import Sequence
from typing import Any

from apps.generation.recipe.recipe import Recipe

LIST = "\x1e"  # begins a list where one text is usual (RFC 7464 begins JSON with it)
REPEATED = "again"  # key of a repeated question, whose first answer was unreadable


def join_texts(recipe: Recipe, texts: Sequence[Any]) -> str:
    """Store one text unchanged; several, or those of a conversation, as a JSON list."""
    if recipe.is_conversation:
        return json.dumps(texts, ensure_ascii=False) if texts else ""
    if len(texts) == 1 and isinstance(texts[0], str) and not texts[0].startswith(LIST):
        return texts[0]
    return LIST + json.dumps(texts, ensure_ascii=False) if texts else ""


def _parse(recipe: Recipe, stored: str) -> list[Any]:
    """Parse a text made by `join_texts`."""
    if not stored:
        return []
    if not recipe.is_conversation and not stored.startswith(LIST):
        return [stored]
    try:
        parts = json.loads(stored.removeprefix(LIST))
    except ValueError:  # a stored list that was cut off
        return [stored]
    return parts if isinstance(parts, list) else [stored]


def split_texts(recipe: Recipe, stored: str) -> list[str]:
    """Return the questions or the replies of a row, from its `prompt` or its `raw`."""
    parts = _parse(recipe, stored)
    return [str(part[REPEATED] if isinstance(part, dict) else part) for part in parts]


def repeated_questions(recipe: Recipe, prompt: str) -> list[bool]:
    """Mark each question that repeats the one before because of an unreadable answer."""
    return [isinstance(part, dict) for part in _parse(recipe, prompt)]


def used_replies(recipe: Recipe, prompt: str, raw: str) -> list[str]:
    """Return the replies of a row, without those whose question was repeated."""
    replies = split_texts(recipe, raw)
    repeated = repeated_questions(recipe, prompt)[1:]
    return [reply for at, reply in enumerate(replies) if not any(repeated[at : at + 1])]
