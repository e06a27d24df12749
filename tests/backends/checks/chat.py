"""Conversations: what the cache saves, and what Stop sets free."""

import asyncio
import os
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.backends.backend import Backend
from tests.backends.workbench import Workbench
from tests.waiting import until

LONG = 3_000  # tokens: a second's work
NUMBERS = os.environ.get("WORKBENCH_TEST_BACKEND_NUMBERS")
QUESTION = "Tell me of kettles, of lamps, and of the harbour in the evening. " * 8


async def three_turns(backend: Backend, workbench: Workbench) -> None:
    if not backend.chat:
        pytest.skip("no chat model")
    await workbench.add(backend)
    conversation, cached = 0, []
    for turn in range(3):
        answer = await workbench.ask(backend.chat, f"{turn}: {QUESTION}", conversation=conversation)
        conversation = answer.conversation
        assert answer.body["status"] == "complete", answer.sentence
        assert answer.body["content"]
        assert answer.names[-1] == "done"
        usage = answer.body["usage"]
        assert usage["completion_tokens"] == 16
        assert usage["ttft_ms"] > 0
        cached.append((usage["cached_tokens"] or 0) / usage["prompt_tokens"])
    # All of the turn before but its last tokens; the question of this one is new.
    assert cached[1] > 0.4, cached
    assert cached[2] > 0.6, cached


async def stop_frees_the_slot(backend: Backend, workbench: Workbench) -> None:
    if not backend.serving or not backend.chat:
        pytest.skip("it shows no slots" if backend.chat else "no chat model")
    await workbench.add(backend)

    async def is_idle() -> bool:
        seen = [await asyncio.to_thread(one.is_busy) for one in backend.serving]
        return not any(seen)

    # How soon it is free is only measured where nobody is slowed.
    with nullcontext() if NUMBERS else backend.slowed():
        conversation, answer = await workbench.start(backend.chat, max_tokens=LONG)
        await workbench.until_token(answer)
        assert not await is_idle()
        began = time.perf_counter()
        stopping = asyncio.create_task(workbench.call("post", f"/answers/{answer}/stop"))
        await until(is_idle, what="a free slot")
        seconds = time.perf_counter() - began
    await stopping
    stopped = await workbench.finished(conversation, answer)
    assert stopped.body["status"] == "stopped"
    assert stopped.body["content"]
    _note(f"{backend.name}: free {seconds * 1000:.0f} ms after Stop")


def _note(line: str) -> None:
    """Append to the file that the table's numbers are taken from, if there is one."""
    if NUMBERS:
        with Path(NUMBERS).open("a", encoding="utf-8") as numbers:
            numbers.write(f"{line}\n")
