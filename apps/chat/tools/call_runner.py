"""The tool calls of one answer: approved, run and stored.

Whatever goes wrong with a call becomes its result, which the model can read. Only Stop and the end
of the process end the answer itself.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.chat.models import NOT_RUN, CallState, ToolCall
from apps.chat.prompt.messages import PromptCall
from apps.chat.streaming.event_log import AnswerLog
from apps.chat.tools import approval
from apps.chat.tools.arguments import parse_arguments, result_limit, truncate
from apps.chat.tools.settings import Offer
from apps.core.text.storable import to_storable
from apps.core.tools import Tool, ToolError
from apps.runtime.async_db import in_db

logger = logging.getLogger(__name__)

MAX_PARALLEL = 16


@dataclass(frozen=True)
class CallRunner:
    """Runs the calls of an answer for a person, with the tools that were offered."""

    answer_id: int
    person: int
    offer: Offer
    log: AnswerLog
    context_size: int | None
    """Tokens per slot; None if unknown."""

    async def run(
        self, calls: Sequence[PromptCall], *, round_number: int, used: int
    ) -> list[ToolCall]:
        """Run the calls of a round in parallel, and return when each has its result.

        Args:
            used: tokens of the context that prompt and answer take already.
        """
        states = await asyncio.to_thread(self._first_states, calls)
        user, rows = await in_db(self._store, calls, states, round_number)
        for row in rows:
            self.log.add_call("tool_call", row.as_event())
        await self._run_all(user, rows, result_limit(self.context_size, len(rows), used))
        return rows

    async def resume(self, rows: Sequence[ToolCall]) -> None:
        """Run the calls of a round that have no result because their process died."""
        user = await in_db(_active_user, self.person)
        open_rows = [row for row in rows if row.needs_result]
        await self._run_all(user, open_rows, result_limit(self.context_size, len(rows)))

    async def _run_all(self, user: User, rows: Sequence[ToolCall], limit: int) -> None:
        """Run calls. If this is cancelled, the end of the answer ends them."""
        async with asyncio.TaskGroup() as group:
            for place, row in enumerate(rows):
                group.create_task(self._run_one(user, row, place, limit))

    async def _run_one(self, user: User, row: ToolCall, place: int, limit: int) -> None:
        state, result = await self._result_of(user, row, place)
        row.state, row.result = state, truncate(to_storable(result), limit)
        row.finished = timezone.now()
        await in_db(row.save, update_fields=["state", "result", "finished"])
        self.log.add_call("tool_result", row.as_event())

    async def _result_of(self, user: User, row: ToolCall, place: int) -> tuple[CallState, str]:
        tool = self.offer.find(row.name)
        if tool is None:
            names = ", ".join(tool.name for tool in self.offer.tools)
            return CallState.FAILED, f"Unknown tool “{row.name}”. Available tools: {names}."
        if place >= MAX_PARALLEL:
            detail = f"Not run: up to {MAX_PARALLEL} calls can run in parallel. Call it again."
            return CallState.FAILED, detail
        try:
            # Another program may have written the schema: checking it can take long.
            arguments = await asyncio.to_thread(parse_arguments, row.arguments, tool)
        except ToolError as error:
            return CallState.FAILED, str(error)
        state = await self._decision(row)
        if state != CallState.RUNNING:
            return state, _not_run_result(state)
        return await _call(tool, user, arguments)

    async def _decision(self, row: ToolCall) -> CallState:
        """Wait until a person has decided about a call that needs approval."""
        if row.state == CallState.WAITING:
            row.state = await approval.wait_for_decision(row)
            if row.state == CallState.RUNNING:
                self.log.add_call("tool_call", row.as_event())
        return CallState(row.state)

    def _first_states(self, calls: Sequence[PromptCall]) -> list[CallState]:
        """Return waiting for calls that a person has to approve, if they can run at all."""
        states = [self._first_state(call) for call in calls[:MAX_PARALLEL]]
        return states + [CallState.RUNNING] * (len(calls) - len(states))

    def _first_state(self, call: PromptCall) -> CallState:
        tool = self.offer.find(call.name)
        if tool is None or call.name not in self.offer.asks:
            return CallState.RUNNING
        try:
            parse_arguments(call.arguments, tool)
        except ToolError:
            return CallState.RUNNING
        return CallState.WAITING

    @transaction.atomic
    def _store(
        self, calls: Sequence[PromptCall], states: Sequence[CallState], round_number: int
    ) -> tuple[User, list[ToolCall]]:
        text_to, reasoning_to = len(self.log.text), len(self.log.reasoning)
        rows = [
            ToolCall(
                answer_id=self.answer_id,
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
        return _active_user(self.person), rows


def _not_run_result(state: CallState) -> str:
    if state == CallState.REFUSED:
        return "The user denied this call. Continue without it."
    if state == CallState.EXPIRED:
        minutes = max(1, round(approval.APPROVAL_SECONDS / 60))
        return f"Not run: the call was not approved within {minutes} minutes."
    return NOT_RUN  # another process took this one for dead, and its answer continues


async def _call(tool: Tool, user: User, arguments: dict[str, Any]) -> tuple[CallState, str]:
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


def _active_user(pk: int) -> User:
    return User.objects.get(pk=pk, is_active=True)
