"""Prompts of about a given length, and the fields of requests that make answers alike (pure)."""

import random
import secrets
from collections.abc import Mapping
from typing import Any

_TEXT = (
    "the a of to and in that it is was for on with as by at from this which their more about other "
    "people house water river garden morning letter winter market silver window engine travel "
    "question answer number system measure paper bridge simple quiet certain early open small"
)
WORDS = _TEXT.split()
# Where a server does not count tokens.
USUAL_CHARACTERS = 4.0
SAMPLE_CHARACTERS = 600
SCHEMA: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "words",
        "schema": {
            "type": "object",
            "properties": {
                "words": {"type": "array", "items": {"type": "string"}, "minItems": 64},
            },
            "required": ["words"],
            "additionalProperties": False,
        },
    },
}


def text(characters: int, seed: int = 0) -> str:
    """English words in a random order, always the same of a seed."""
    rng = random.Random(seed)  # noqa: S311
    words: list[str] = []
    length = 0
    while length <= characters:
        words.append(rng.choice(WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)[:characters]


def fresh() -> str:
    """A text that no prompt cache has seen."""
    return f"{secrets.token_hex(8)} "


def uncached_prompt(characters: int) -> str:
    """A prompt that differs from all others at its beginning."""
    return fresh() + text(characters)


def cached_prompt(characters: int) -> str:
    """A prompt that differs from others of its length at its end alone."""
    return text(characters) + " " + fresh()
