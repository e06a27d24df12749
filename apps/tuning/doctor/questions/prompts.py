"""The questions of how prompts are processed and cached. Each fills its fields of the answers."""

import asyncio
import re
import secrets
import time
from itertools import takewhile
from typing import Any

from apps.llm.client import Message
from apps.llm.errors import BadRequest
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.prompt_answers import PromptRead, Rendered, Turns
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
# Of an earlier answer; no template has it by itself.
THOUGHT = "The doctor thought of the letter before."


async def ask_same_beginning_twice(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Send two prompts with one long beginning, then with another first character.

    Where the second is not cached, another asks for the cache; where it is, the chat goes on.
    """
    beginning = _beginning(reading.context)
    if beginning is None:
        return
    rendered, rendered_at = "", 0.0
    if has_clock(reading):
        rendered, rendered_at = await render(asker, _message(beginning)), time.monotonic()
    answers.first = _prompt_read(await asker.chat(f"{beginning}Say A.", 1))
    if has_clock(reading):
        await asyncio.sleep(max(0.0, CLOCK_SECONDS - (time.monotonic() - rendered_at)))
        later, apart = await render(asker, _message(beginning)), time.monotonic() - rendered_at
        answers.rendered = Rendered(len(rendered), _same_beginning(rendered, later), apart)
    answers.again = _prompt_read(await asker.chat(f"{beginning}Say B.", 1))
    if answers.again is None:
        return
    if answers.again.is_cached:
        await _ask_second_turn(asker, reading, answers, f"{beginning}Say B.")
    else:
        reply = await asker.chat(f"{beginning}Say C.", 1, params={"cache_prompt": True})
        answers.again_if_asked = _prompt_read(reply)
    answers.changed = _prompt_read(await asker.chat(f"_{beginning[1:]}Say B.", 1))


async def _ask_second_turn(asker: Asker, reading: Reading, answers: Answers, first: str) -> None:
    """Go on with the chat of the last question, as programs do: with its answer before."""
    answer: Message = {"role": "assistant", "content": "B."}
    if reading.thinking.thinks:
        answer["reasoning_content"] = THOUGHT
    chat = [_message(first), answer, _message("Say D.")]
    try:
        answers.next_turn = _prompt_read(await asker.chat(chat, 1))
    except BadRequest:  # a template may refuse what a program sends back; that is not asked here
        return
    if not reading.has_own_routes or has_clock(reading):
        return
    one, two = await render(asker, chat[0]), await render(asker, *chat)
    end = one.find(first) + len(first)
    if end >= len(first):
        answers.turns = Turns(end, min(end, _same_beginning(one, two)), THOUGHT in two)


def has_clock(reading: Reading) -> bool:
    return reading.has_own_routes and CLOCK.search(reading.template) is not None


async def render(asker: Asker, *messages: Message, **fields: Any) -> str:
    """The prompt that the chat template makes of messages."""
    reply = await asker.post("/apply-template", {"messages": list(messages), **fields})
    return str(reply.get("prompt") or "")


def _message(text: str) -> Message:
    return {"role": "user", "content": text}


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
    processing = usage.prefill_ms / 1000 if usage.prefill_ms else None
    return PromptRead(usage.prompt_tokens, usage.cached_tokens, reply.seconds, processing)
