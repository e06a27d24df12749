"""The prompt rate of one micro-batch (-ub) against another, on a second process of our own."""

import asyncio
import statistics
from collections.abc import Sequence
from contextlib import aclosing

from apps.llm.client import ChatRequest, Client, client_for
from apps.llm.events import Usage
from apps.llm.permits import Permit
from apps.servers.models import Server
from apps.servers.services import Target
from apps.tuning.machine_hooks import can_try, open_trial
from apps.tuning.sweep.prompts import uncached_prompt

UBATCHES = (128, 256, 512, 1024, 2048)
# Two of the largest micro-batches; a slot of the trial has room for the answer and the template.
PROMPT_TOKENS, ROOM_TOKENS = 4_096, 512
ROUNDS = 3


async def plan_ubatches(server: Server) -> Sequence[int]:
    """Return the micro-batches to compare; none where Workbench did not start the server."""
    return UBATCHES if await asyncio.to_thread(can_try, server) else ()


async def measure_ubatch(
    target: Target, ubatch: int, characters: float, held: Permit
) -> float | None:
    """Return prompt tokens per second with this micro-batch; None where no trial could run.

    Args:
        characters: of one token.
        held: a slot of the server that serves, so that nobody is measured beside.

    Raises:
        LLMError: an answer is not complete.
    """
    length = round(PROMPT_TOKENS * characters)
    async with open_trial(target.server, ubatch, PROMPT_TOKENS + ROOM_TOKENS) as endpoint:
        if endpoint is None:
            return None
        client = client_for(endpoint)
        rates = [await _rate(client, target.model, length) for _ in range(ROUNDS)]
    known = [rate for rate in rates[1:] if rate]  # the first warms the process up
    return statistics.median(known) if known else None


async def _rate(client: Client, model: str, length: int) -> float | None:
    request = ChatRequest(model, [{"role": "user", "content": uncached_prompt(length)}], 1, {})
    async with aclosing(client.stream_chat(request)) as events:
        usages = [event async for event in events if isinstance(event, Usage)]
    if not usages or not usages[-1].prefill_ms:
        return None
    return usages[-1].prefilled / usages[-1].prefill_ms * 1000
