"""The questions of how a streamed answer comes and ends. Each fills its fields of the answers."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from apps.llm.events import Done, Reasoning, Token, Usage
from apps.tuning.doctor.answers import Answers, Arrival, Leaving, Thought
from apps.tuning.doctor.questions.asker import Asker
from apps.tuning.doctor.reading import Reading, named_kinds

# Of the answer that is read to its end, and of the one that is left; where the server writes that
# one to its end too, its slot is gone for so long.
WHOLE_SECONDS, LONG_SECONDS = 2.0, 3.0
FEWEST_TOKENS, MOST_TOKENS = 64, 2_048
# Programs that limit an answer often allow as many. Slower servers would take too long.
USUAL_TOKENS, THOUGHT_SECONDS = 512, 30.0
OPEN, CLOSE = "<think>", "</think>"
SPEED_WHERE_UNKNOWN = 20.0
# Without an end of its own. At random, because a model that repeats itself may repeat white space,
# which servers hold back.
ENDLESS = {"ignore_eos": True, "temperature": 1.0}
# A server on the other side of the world has heard by then that its reader is gone.
GRACE_SECONDS = 0.25
# llama-server notices some closed connections only in a second without a look at its slots.
WAITS = (0.3, 0.3, *(1.2,) * 7)


@dataclass(frozen=True, slots=True)
class _Writing:
    """A slot that writes an answer."""

    task: int
    written: int


async def ask_for_stream(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Read a longer answer, and compare when its tokens came with the server's own clock.

    One that came late is asked for again: a machine that is busy for a moment is no proxy.
    """
    answers.arrival = await _read_stream(asker, reading)
    if answers.arrival is not None and answers.arrival.is_late:
        again = await _read_stream(asker, reading)
        if again is not None and again.delay < answers.arrival.delay:
            answers.arrival = again


async def _read_stream(asker: Asker, reading: Reading) -> Arrival | None:
    allowed = _long_answer(WHOLE_SECONDS, asker.speed, reading.context)
    times, usage = [], None
    async with asker.stream("Count.", allowed, params=ENDLESS) as events:
        async for event in events:
            if isinstance(event, Token | Reasoning):
                times.append(time.monotonic())
            elif isinstance(event, Usage):
                usage = event
    if usage is None:
        return None
    return arrival_of(times, usage.completion_tokens, usage.tokens_per_second)


def arrival_of(times: Sequence[float], tokens: int, speed: float | None) -> Arrival | None:
    """Compare the times at which tokens came with the server's speed; None where one is missing.

    A stream that is sent on at once comes as evenly as it is written: its tokens come, on average,
    half of the whole time before the last one.
    """
    if not times or not speed or tokens < 2:
        return None
    generation = (tokens - 1) / speed
    delay = fmean(times) - times[-1] + generation / 2
    return Arrival(tokens, generation, times[-1] - times[0], max(0.0, delay))


async def read_kinds_of_drafts(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Read how the server drafts: a slot reports it with its latest request."""
    if not reading.has_own_routes or not reading.shows_slots:
        return
    reply = await asker.get("/slots")
    for slot in reply if isinstance(reply, list) else []:
        params = slot.get("params") if isinstance(slot, dict) else None
        kinds = str(params.get("speculative.types") or "") if isinstance(params, dict) else ""
        answers.drafts_with = named_kinds(kinds) or answers.drafts_with


async def ask_for_thought(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Ask as programs do that say nothing of thinking, and leave when the answer itself begins."""
    most = (asker.speed or SPEED_WHERE_UNKNOWN) * THOUGHT_SECONDS
    room = reading.context or 2 * USUAL_TOKENS
    if reading.thinking.thinks is False or min(most, room / 2) < USUAL_TOKENS:
        return
    began, text, thought, reason = time.monotonic(), "", 0, ""
    async with asker.stream("Say hello.", USUAL_TOKENS) as events:
        async for event in events:
            match event:
                case Reasoning():
                    thought += 1
                case Token():
                    text += event.text
                    thought += text.lstrip().startswith(OPEN)
                    if text.strip() and not _may_be_thought(text):
                        break
                case Done():
                    reason = event.finish_reason
    is_cut = reason == "length" and thought > 0
    answers.thought = Thought(thought, USUAL_TOKENS, time.monotonic() - began, is_cut)


def _may_be_thought(text: str) -> bool:
    """True if the server passes a thought on as text, and this is its beginning."""
    return OPEN.startswith(text.lstrip()[: len(OPEN)]) and CLOSE not in text


async def ask_and_leave(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Close a long answer at its first token, and watch its slot until that is free."""
    if not reading.has_own_routes or not reading.shows_slots:
        return
    before = {one.task for one in await _writing(asker)}
    allowed = _long_answer(LONG_SECONDS, asker.speed, reading.context)
    async with asker.stream("Count.", allowed, params=ENDLESS) as events:
        async for event in events:
            if isinstance(event, Token | Reasoning):
                break
        new = [one for one in await _writing(asker) if one.task not in before]
        await events.aclose()
        if len(new) == 1:  # else others ask the server too
            answers.leaving = await _watch(asker, new[0].task, allowed)


async def _watch(asker: Asker, task: int, allowed: int) -> Leaving:
    await asyncio.sleep(GRACE_SECONDS)
    began, first, last, seen_at = time.monotonic(), None, None, 0.0
    for wait in (0.0, *WAITS):
        await asyncio.sleep(wait)
        found = next((one for one in await _writing(asker) if one.task == task), None)
        if found is None:
            break
        first, last, seen_at = first or found, found, time.monotonic() - began
    tokens = last.written - first.written if first and last else 0
    return Leaving(tokens, seen_at, allowed)


def _long_answer(seconds: float, speed: float | None, context: int | None) -> int:
    """Tokens that take the server about so long, half a slot at most."""
    wanted = int(seconds * (speed or SPEED_WHERE_UNKNOWN))
    room = context // 2 if context else FEWEST_TOKENS
    return max(1, min(max(wanted, FEWEST_TOKENS), MOST_TOKENS, room))


async def _writing(asker: Asker) -> list[_Writing]:
    """The slots that write an answer now; empty where the reply is not as expected."""
    reply = await asker.get("/slots")
    entries = reply if isinstance(reply, list) else []
    busy = [entry for entry in entries if isinstance(entry, dict) and entry.get("is_processing")]
    return [_Writing(int(entry.get("id_task") or 0), _decoded(entry)) for entry in busy]


def _decoded(entry: dict[str, Any]) -> int:
    match entry.get("next_token"):
        case [{"n_decoded": int(tokens)}, *_]:
            return tokens
        case _:
            return 0
