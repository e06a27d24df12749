"""The questions to a model that chats. Each fills its fields of the answers."""

import asyncio
import re
import secrets
import time
from itertools import takewhile
from typing import Any

from apps.llm.errors import BadRequest, NotSupported, PromptTooLong
from apps.llm.thinking import NOT_REPORTED, plan_thinking
from apps.tuning.doctor.answers import COLOURS, Answers, PromptRead, Rendered
from apps.tuning.doctor.questions.asker import Asker, Reply
from apps.tuning.doctor.reading import Reading

# Of the beginning that two prompts have in common; half of a slot at most.
MOST_CHARACTERS = 4_000
FEWEST_CHARACTERS = 64
WHERE_CONTEXT_IS_UNKNOWN = 1_000
# Long enough for a clock of seconds to move on.
CLOCK_SECONDS = 1.1
CLOCK = re.compile(r"strftime_now|date_string|datetime|\bnow\(")
SENTENCE = "The doctor of a model server reads this sentence and has nothing to do. "

TOOL = "doctor_reads_thermometer"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "Returns the temperature of a room.",
            "parameters": {
                "type": "object",
                "properties": {"room": {"type": "string"}},
                "required": ["room"],
            },
        },
    }
]
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "colour",
        "schema": {
            "type": "object",
            "properties": {"colour": {"enum": list(COLOURS)}},
            "required": ["colour"],
            "additionalProperties": False,
        },
    },
}
THOUGHT_TOKENS = 32
JSON_TOKENS = 64


async def ask_same_beginning_twice(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Send two prompts with one long beginning; a third asks for the cache where it is not used."""
    beginning = _beginning(reading.context)
    if beginning is None:
        return
    rendered, rendered_at = "", 0.0
    has_clock = reading.has_own_routes and CLOCK.search(reading.template)
    if has_clock:
        rendered, rendered_at = await _render(asker, beginning), time.monotonic()
    answers.first = _prompt_read(await asker.chat(f"{beginning}Say A.", 1))
    if has_clock:
        await asyncio.sleep(max(0.0, CLOCK_SECONDS - (time.monotonic() - rendered_at)))
        later, apart = await _render(asker, beginning), time.monotonic() - rendered_at
        same = _same_beginning(rendered, later)
        answers.rendered = Rendered(len(rendered), same, apart)
    answers.again = _prompt_read(await asker.chat(f"{beginning}Say B.", 1))
    if answers.again is not None and not answers.again.is_cached:
        reply = await asker.chat(f"{beginning}Say C.", 1, params={"cache_prompt": True})
        answers.again_if_asked = _prompt_read(reply)


async def ask_with_tool(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Look for a tool in the rendered prompt, and send one request that has it."""
    if reading.has_own_routes:
        answers.shows_tools = TOOL in await _render(asker, "How warm is it?", tools=TOOLS)
    try:
        await asker.chat("How warm is it in the kitchen?", 16, tools=TOOLS)
    except (BadRequest, NotSupported) as error:
        answers.tools_refused = str(error)
    except PromptTooLong as error:
        answers.tool_prompt_tokens = error.tokens


async def ask_without_thinking(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Turn thinking off with every field that a server may listen to."""
    if reading.thinking.thinks is False:
        return
    params = plan_thinking(NOT_REPORTED, "off").params
    answers.thinking_off = (await asker.chat("Say hello.", THOUGHT_TOKENS, params=params)).answer


async def ask_for_json(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Ask for a colour under a schema, and for anything but a colour in words."""
    plan = plan_thinking(reading.thinking)
    reply = await asker.chat(
        "Write a sentence about the sea, without JSON.",
        JSON_TOKENS + plan.extra_tokens,
        params=plan.params,
        response_format=SCHEMA,
    )
    answers.schema = reply.answer


def _beginning(context: int | None) -> str | None:
    """A text that no cache has seen; None where a slot has no room for it."""
    characters = min(MOST_CHARACTERS, context // 2) if context else WHERE_CONTEXT_IS_UNKNOWN
    if characters < FEWEST_CHARACTERS:
        return None
    text = f"{secrets.token_hex(8)}. " + SENTENCE * (1 + characters // len(SENTENCE))
    return text[:characters]


def _same_beginning(one: str, other: str) -> int:
    """Characters until the first that differs."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _prompt_read(reply: Reply) -> PromptRead | None:
    usage = reply.usage
    if usage is None or not usage.tells_cached or usage.is_estimated:
        return None
    return PromptRead(usage.prompt_tokens, usage.cached_tokens, reply.seconds)


async def _render(asker: Asker, text: str, **fields: Any) -> str:
    """The prompt that the chat template makes of one message."""
    message = {"role": "user", "content": text}
    reply = await asker.post("/apply-template", {"messages": [message], **fields})
    return str(reply.get("prompt") or "")
