"""Answers of a real llama.cpp that are cut in the middle, and what is to be the same in two."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, ClassVar

import httpx2

from apps.llm.permits import Lane, permits_in_flight
from apps.llm.raw_answer import RawAnswer
from apps.llm.response_reader import ResponseReader
from apps.servers.models import Server
from apps.servers.services import hold_slot, refresh_server
from tests.conftest import SLOTS

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
# The tiny model repeats itself less under penalties, which count what was written before the cut.
LIVELY = {"max_tokens": 600, "temperature": 0, "presence_penalty": 1.0, "frequency_penalty": 0.3}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {**LIVELY, "messages": [{"role": "user", "content": "Say much."}]},
    COMPLETIONS: {**LIVELY, "prompt": "Say much."},
}
CUT_AFTER = 30_000  # bytes: of 600 chunks of 200 about the first quarter
CONTINUED, RESTARTS = "x-workbench-continued", "x-workbench-restarts"


class CutAnswer(RawAnswer):
    """Stops coming in the middle, as often as asked for."""

    cuts: ClassVar[int] = 0
    is_cut: ClassVar[asyncio.Event]
    chunks: ClassVar[int]
    """Of the last answer, about."""

    def __init__(self, response: httpx2.Response, body: ResponseReader) -> None:
        super().__init__(response, body)
        self._left = CUT_AFTER
        CutAnswer.chunks = 0

    async def read(self) -> bytes:
        data = await super().read()
        CutAnswer.chunks += data.count(b"data:")
        if not CutAnswer.cuts:
            return data
        if self._left <= 0:
            CutAnswer.is_cut.set()
            await asyncio.Event().wait()
        data = data[: self._left]
        self._left -= len(data)
        return data


async def ask_beside_people(
    program: httpx2.AsyncClient, server: Server, path: str, body: dict[str, Any], *, cuts: int = 1
) -> httpx2.Response:
    """Ask in the lane batch; people take the slot so often, in the middle of the answer."""
    seen = await refresh_server(server)
    CutAnswer.cuts, CutAnswer.is_cut = cuts, asyncio.Event()
    lane = {"X-Workbench-Lane": "batch"}
    asked = asyncio.create_task(program.post(path, json=body, headers=lane))
    while CutAnswer.cuts:
        await asyncio.wait_for(CutAnswer.is_cut.wait(), 60)
        CutAnswer.is_cut.clear()
        async with AsyncExitStack() as people:
            for person in range(SLOTS):
                slot = hold_slot(seen, lane=Lane.INTERACTIVE, person=100 + person)
                await people.enter_async_context(slot)
            assert (await permits_in_flight(server.pk))[Lane.BATCH] == 0
            CutAnswer.cuts -= 1
    return await asked


def read(answer: httpx2.Response) -> list[dict[str, Any]]:
    """The chunks of an answer; a whole one is one."""
    assert answer.status_code == 200
    if answer.headers["content-type"].startswith("application/json"):
        return [answer.json()]
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def without_times(chunk: dict[str, Any]) -> dict[str, Any]:
    """What two answers to the same question have in common: all but their names and times."""
    timings = chunk.get("timings", {})
    usage = {name: n for name, n in chunk.get("usage", {}).items() if "details" not in name}
    kept = {name: value for name, value in chunk.items() if name not in ("id", "created")}
    return kept | {
        "timings": sorted(timings),
        "written": timings.get("predicted_n"),
        "usage": usage,
    }
