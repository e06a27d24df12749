"""The arguments of a tool call, checked, and the size of its result."""

import json
import logging

from apps.chat.prompt.context import NEARLY_FULL
from apps.core.schemas.argument_validation import Unchecked, argument_problems
from apps.core.schemas.json_types import JsonObject
from apps.core.tools import Tool, ToolError

logger = logging.getLogger(__name__)

RESULT_CHARACTERS = 16_000
SMALLEST_RESULT = 500
ARGUMENT_CHARACTERS = 100_000
# Share of the context for all results of a round together.
RESULTS_SHARE = 0.25
CHARACTERS_PER_TOKEN = 3


def parse_arguments(text: str, tool: Tool) -> JsonObject:
    """Return the arguments of a call after checking them against the tool's schema.

    Raises:
        ToolError: they do not fit. The sentence says where.
    """
    if len(text) > ARGUMENT_CHARACTERS:
        raise ToolError(f"The arguments are longer than {ARGUMENT_CHARACTERS:,} characters.")
    try:
        arguments: JsonObject = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The arguments are not valid JSON: {error}. Call it again.") from error
    try:
        problems = argument_problems(arguments, tool.parameters)
    except Unchecked as error:
        logger.warning("The arguments of %s are left to its server: %s", tool.name, error)
        return arguments
    if problems:
        detail = "; ".join(problems)
        raise ToolError(truncate(f"The arguments do not fit: {detail}. Call it again.", 1000))
    return arguments


def result_limit(context_size: int | None, calls: int, used: int = 0) -> int:
    """Return the characters that each result of a round may have.

    Results take at most half of what is left, so that later rounds find some too.

    Args:
        context_size: tokens per slot; None if unknown.
        calls: number of calls in the round.
        used: tokens that prompt and answer take already.
    """
    if context_size is None:
        return RESULT_CHARACTERS
    tokens = min(context_size * RESULTS_SHARE, (NEARLY_FULL * context_size - used) / 2)
    room = int(tokens * CHARACTERS_PER_TOKEN) // max(1, calls)
    return max(SMALLEST_RESULT, min(RESULT_CHARACTERS, room))


def truncate(text: str, limit: int) -> str:
    """Return a text with at most `limit` characters, and a note on how much was cut."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[Cut here: the first {limit:,} of {len(text):,} characters are shown.]"
