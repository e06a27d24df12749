"""Waiting for a person to approve a tool call.

The answer's task sleeps meanwhile: it holds no slot, no thread and no connection. The decision is
in the database; whoever decides notifies the process that writes the answer.
"""

import asyncio

from django.utils import timezone

from apps.chat.models import CallState, ToolCall
from apps.runtime.async_db import in_db

APPROVAL_SECONDS = 3600.0
# In case the notification is lost.
RECHECK_SECONDS = 30.0

_deciding: dict[int, asyncio.Event] = {}


async def wait_for_decision(call: ToolCall) -> CallState:
    """Return the state of a call once it no longer waits: running, refused or expired."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + APPROVAL_SECONDS
    decided = _deciding.setdefault(call.pk, asyncio.Event())
    try:
        while True:
            decided.clear()
            left = deadline - loop.time()
            state = await in_db(_state, call.pk, expire=left <= 0)
            if state != CallState.WAITING:
                return state
            try:
                async with asyncio.timeout(min(left, RECHECK_SECONDS)):
                    await decided.wait()
            except TimeoutError:
                continue
    finally:
        del _deciding[call.pk]


def notify(call: int) -> None:
    """Wake the waiter of a call, if it waits in this event loop."""
    if call in _deciding:
        _deciding[call].set()


def _state(pk: int, *, expire: bool) -> CallState:
    call = ToolCall.objects.filter(pk=pk)
    if expire:
        call.filter(state=CallState.WAITING).update(
            state=CallState.EXPIRED, finished=timezone.now()
        )
    return CallState(call.values_list("state", flat=True).get())
