"""The calls of one round: put together from the stream, checked, approved, run and kept.

Whatever goes wrong with a call becomes its result, which the model can read: only Stop and the end
of the process end the answer itself.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.chat.answering.event_log import AnswerLog
from apps.chat.models import CallState, ToolCall
from apps.chat.models.calls import NOT_RUN
from apps.chat.prompt import context
from apps.chat.tools import approval
from apps.chat.tools.settings import Offer
from apps.core.schemas import argument_schemas
from apps.core.text.storable import to_storable
from apps.core.tools import Tool, ToolError
from apps.runtime.async_db import in_db

logger = logging.getLogger(__name__)

RESULT_CHARACTERS = 16_000
SMALLEST_RESULT = 500
ARGUMENT_CHARACTERS = 100_000
# Of the context, all results of a round together.
RESULTS_SHARE = 0.25
CHARACTERS_PER_TOKEN = 3
AT_ONCE = 16


class Gathered:
    """The calls of a round, from the pieces in which a server streams them."""

    def __init__(self) -> None:
        self._calls: dict[Any, dict[str, str]] = {}
        self._current: Any = None

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, delta: dict[str, Any]) -> None:
        """A piece: `index`, in the first one `id` and the name, and a part of the arguments."""
        function = delta.get("function") or {}
        key = delta.get("index", self._current)
        known = self._calls.get(key)
        # Some proxies give every call the same index: another id is another call.
        if known is not None and delta.get("id") and known["id"] not in ("", delta["id"]):
            key, known = delta["id"], None
        if known is None:
            known = self._calls[key] = {"id": "", "name": "", "arguments": ""}
        self._current = key
        known["id"] = known["id"] or str(delta.get("id") or "")
        known["name"] += str(function.get("name") or "")
        piece = function.get("arguments") or ""
        known["arguments"] += piece if isinstance(piece, str) else json.dumps(piece)

    def take(self, round_number: int) -> list[context.Call]:
        """What was called; afterwards nothing is."""
        calls, self._calls, self._current = list(self._calls.values()), {}, None
        return [
            context.Call(
                to_storable(call["id"])[:200] or f"call_{round_number}_{number}",
                to_storable(call["name"])[:200],
                to_storable(call["arguments"]),
            )
            for number, call in enumerate(calls, start=1)
        ]


async def work(
    calls: Sequence[context.Call],
    *,
    answer: int,
    person: int,
    round_number: int,
    offer: Offer,
    log: AnswerLog,
    context_size: int | None,
    used: int = 0,
) -> list[ToolCall]:
    """Runs the calls of a round, side by side, and returns when each has its result.

    Args:
        used: tokens of the context that prompt and answer take already.
    """
    states = await asyncio.to_thread(_first_states, calls, offer)
    user, rows = await in_db(_save, calls, states, answer, person, round_number, log)
    for row in rows:
        log.call("tool_call", described(row))
    await _settle_all(rows, offer, user, log, result_limit(context_size, len(rows), used))
    return rows


async def work_on(
    rows: Sequence[ToolCall],
    *,
    person: int,
    offer: Offer,
    log: AnswerLog,
    context_size: int | None,
) -> None:
    """Takes those calls of a round to their results that have none: their process died."""
    user = await in_db(_person, person)
    limit = result_limit(context_size, len(rows))
    await _settle_all([row for row in rows if row.is_unsettled], offer, user, log, limit)


async def _settle_all(
    rows: Sequence[ToolCall], offer: Offer, user: User, log: AnswerLog, limit: int
) -> None:
    """If it is cancelled, what becomes of the calls is said with the answer's end."""
    async with asyncio.TaskGroup() as group:
        for place, row in enumerate(rows):
            group.create_task(_settle(row, place, offer, user, log, limit))


def described(call: ToolCall) -> dict[str, Any]:
    """A call as the events and the API show it."""
    return {
        "id": call.pk,
        "answer": call.answer_id,
        "call_id": call.call_id,
        "round": call.round,
        "name": call.name,
        "arguments": call.arguments,
        "at": call.text_to,
        "state": str(call.state),
        "result": call.result,
    }


def result_limit(context_size: int | None, calls: int, used: int = 0) -> int:
    """Characters a result may have, so that the results of a round leave room to answer.

    They take at most half of what is left, so that rounds to come find some too.
    """
    if context_size is None:
        return RESULT_CHARACTERS
    tokens = min(context_size * RESULTS_SHARE, (context.NEARLY_FULL * context_size - used) / 2)
    room = int(tokens * CHARACTERS_PER_TOKEN) // max(1, calls)
    return max(SMALLEST_RESULT, min(RESULT_CHARACTERS, room))


def capped(text: str, limit: int) -> str:
    """The beginning of a long text, and how much of it that is."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[Cut here: the first {limit:,} of {len(text):,} characters are shown.]"


def arguments_of(call: ToolCall, tool: Tool) -> dict[str, Any]:
    """What a call gives its tool, after a look at the schema.

    Raises:
        ToolError: it does not fit. The sentence says where.
    """
    if len(call.arguments) > ARGUMENT_CHARACTERS:
        raise ToolError(f"The arguments are longer than {ARGUMENT_CHARACTERS:,} characters.")
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The arguments are not valid JSON: {error}. Call it again.") from error
    try:
        problems = argument_schemas.problems(arguments, tool.parameters)
    except argument_schemas.Unchecked as error:
        logger.warning("The arguments of %s are left to its server: %s", tool.name, error)
        return arguments  # type: ignore[no-any-return]
    if problems:
        said = "; ".join(problems)
        raise ToolError(capped(f"The arguments do not fit: {said}. Call it again.", 1000))
    return arguments  # type: ignore[no-any-return]


async def _settle(
    row: ToolCall, place: int, offer: Offer, user: User, log: AnswerLog, limit: int
) -> None:
    """Takes one call to its result, whatever it is."""
    state, result = await _outcome(row, place, offer, user, log)
    row.state, row.result = state, capped(to_storable(result), limit)
    row.finished = timezone.now()
    await in_db(row.save, update_fields=["state", "result", "finished"])
    log.call("tool_result", described(row))


async def _outcome(
    row: ToolCall, place: int, offer: Offer, user: User, log: AnswerLog
) -> tuple[CallState, str]:
    tool = offer.find(row.name)
    if tool is None:
        names = ", ".join(tool.name for tool in offer.tools)
        return CallState.FAILED, f"Unknown tool “{row.name}”. Available tools: {names}."
    if place >= AT_ONCE:
        return (
            CallState.FAILED,
            f"Not run: up to {AT_ONCE} calls can run in parallel. Call it again.",
        )
    try:
        # The schema may be another program's: not on the loop, however short it is.
        arguments = await asyncio.to_thread(arguments_of, row, tool)
    except ToolError as error:
        return CallState.FAILED, str(error)
    state = CallState(row.state)
    if state == CallState.WAITING:
        row.state = state = await approval.wait(row)
        if state == CallState.RUNNING:
            log.call("tool_call", described(row))
    if state == CallState.REFUSED:
        return state, "The user denied this call. Continue without it."
    if state == CallState.EXPIRED:
        minutes = max(1, round(approval.APPROVAL_SECONDS / 60))
        return state, f"Not run: the call was not approved within {minutes} minutes."
    if state != CallState.RUNNING:  # another process took it for dead, and its answer goes on
        return state, NOT_RUN
    return await _run(tool, user, arguments)


async def _run(tool: Tool, user: User, arguments: dict[str, Any]) -> tuple[CallState, str]:
    try:
        async with asyncio.timeout(tool.seconds):
            return CallState.DONE, str(await tool.function()(user, arguments))
    except TimeoutError:
        return CallState.FAILED, f"Timed out after {tool.seconds:g} s."
    except ToolError as error:
        return CallState.FAILED, str(error)
    except Exception:
        logger.exception("The tool %s failed", tool.name)
        return CallState.FAILED, "The tool failed because of an error in Workbench."


@transaction.atomic
def _save(
    calls: Sequence[context.Call],
    states: Sequence[CallState],
    answer: int,
    person: int,
    round_number: int,
    log: AnswerLog,
) -> tuple[User, list[ToolCall]]:
    """The person the tools work for, and the calls as rows. Those he is to look at wait."""
    text_to, reasoning_to = len(log.text), len(log.reasoning)
    rows = [
        ToolCall(
            answer_id=answer,
            round=round_number,
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            text_to=text_to,
            reasoning_to=reasoning_to,
            state=state,
        )
        for call, state in zip(calls, states, strict=True)
    ]
    for row in rows:
        row.save()
    return _person(person), rows


def _person(pk: int) -> User:
    return User.objects.get(pk=pk, is_active=True)


def _first_states(calls: Sequence[context.Call], offer: Offer) -> list[CallState]:
    """Those beyond the most at once will not be run: nobody is asked about them."""
    states = [_first_state(call, offer) for call in calls[:AT_ONCE]]
    return states + [CallState.RUNNING] * (len(calls) - len(states))


def _first_state(call: context.Call, offer: Offer) -> CallState:
    """A call that cannot be run is nobody's question."""
    tool = offer.find(call.name)
    if tool is None or call.name not in offer.asks:
        return CallState.RUNNING
    try:
        arguments_of(ToolCall(arguments=call.arguments), tool)
    except ToolError:
        return CallState.RUNNING
    return CallState.WAITING
