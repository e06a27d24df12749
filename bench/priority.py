"""How long a question waits while a job keeps every slot of the model server busy.

A real llama.cpp with 4 slots, whose model writes a token every 20 ms with four slots busy and reads
a prompt at 2 ms a token: the times of a model of some billions of weights on a small GPU, so that a
few milliseconds of ours weigh what they would weigh there. Rows are 300 to 450 tokens long, 6 to 9
seconds each. Questions of 60 tokens, one every few seconds, are asked

- `idle`: directly, the server does nothing else;
- `one free`: directly, three bare clients write rows: the physical limit of a question that need
  not wait, because its prompt is read beside three answers being written;
- `full`: directly, four bare clients write rows;
- `reserved`: through the workbench beside a job, within the time in which jobs leave a slot free
  after a question (WORKBENCH_IDLE_AFTER_CHAT, here 4 seconds);
- `take over`: through the workbench after a longer pause: the job is on all slots again, and the
  question takes the slot of the youngest row.

in alternating rounds of one run. What questions cost the job is measured in the same rounds: the
tokens of accepted rows and of those being written that will be, with and without questions. The
questions' own share is the time for which they had a slot; the rest of the fall is what the rule
of the free slot costs in one case, and in the other what had been written of the rows that were
closed.

Run: `.venv/bin/python -m bench.priority [--rounds 3] [--questions 8]`. Nothing else should be
running.
"""

import argparse
import asyncio
import itertools
import json
import random
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

import httpx2

from apps.generation.recipe import parse
from bench.jobs import FRESH, Workbench, row_body, verdict
from bench.model import write_model
from tests.llama_process import LlamaProcess
from tests.stack import Stack

SLOTS = 4
IDLE_AFTER_CHAT = 4
ANSWER_TOKENS = 40
EVERY_SECONDS = 4.0
SETTLE_SECONDS = 3.0
ALONE_SECONDS = 24.0
ROWS = 400
TTFT_BAR = 1.2
COST_BAR = 0.05
RECIPE: dict[str, Any] = {
    "system": "You write texts.",
    "prompt": "Write about a {{ thing }}.",
    "attributes": {"thing": ["kettle", "toaster", "desk lamp", "backpack", "laptop", "keyboard"]},
    "schema": {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string", "minLength": 300, "maxLength": 450}},
    },
    "params": {"temperature": 0.9, "max_tokens": 500},
}


@dataclass
class Answer:
    """What one asker saw. Seconds from sending the question."""

    first_token: float
    total: float


@dataclass
class Side:
    answers: list[Answer] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    """Useful tokens a second of the job without questions, one for each round."""
    beside: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    """Slot time of the questions / (slots x wall)."""

    def ttft(self, quantile: float) -> float:
        """In milliseconds."""
        ordered = sorted(answer.first_token for answer in self.answers)
        return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))] * 1000


numbers = itertools.count(1)


def question() -> str:
    """About 60 bytes, which are tokens here; no two begin alike, so none is in the cache."""
    number = next(numbers)
    words = " ".join(random.Random(number).choices(["kettle", "window", "garden", "letter"], k=6))
    return f"{number * 7919} times: what of {words}?"


Ask = Callable[[str], Awaitable[Answer]]


def asks_directly(client: httpx2.AsyncClient, base_url: str) -> Ask:
    async def ask(text: str) -> Answer:
        body = {
            "model": "any",
            "messages": [{"role": "user", "content": text}],
            "max_tokens": ANSWER_TOKENS,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        start, first = time.perf_counter(), 0.0
        async with client.stream("POST", f"{base_url}/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if not first and line.startswith("data: {"):
                    choices = json.loads(line[6:])["choices"]
                    if any(choice["delta"].get("content") for choice in choices):
                        first = time.perf_counter() - start
        return Answer(first, time.perf_counter() - start)

    return ask


def asks_workbench(client: httpx2.AsyncClient, api: str) -> Ask:
    async def ask(text: str) -> Answer:
        made = await client.post(f"{api}/conversations", json={})
        url = f"{api}/conversations/{made.json()['id']}/messages"
        start, first, event = time.perf_counter(), 0.0, ""
        reply = await client.post(
            url, json={"content": text, "params": {"max_tokens": ANSWER_TOKENS}}
        )
        assert reply.status_code == 202, reply.text
        events = f"{api}/answers/{reply.json()['answer']['id']}/events"
        async with client.stream("GET", events) as response:
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    event = line[7:]
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                    if not first and event in {"token", "snapshot"} and data["text"]:
                        first = time.perf_counter() - start
                    assert event != "error", data
                    if event == "done":
                        break
        return Answer(first, time.perf_counter() - start)

    return ask


async def one_every(seconds: float, questions: int, ask: Ask) -> list[Answer]:
    """Asks at a steady pace; who comes late asks at once. Not in step with anything."""
    answers, due = [], time.monotonic()
    for _ in range(questions):
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        due = max(due, time.monotonic()) + seconds * random.uniform(0.8, 1.2)
        answers.append(await ask(question()))
    return answers


async def one_after_pauses(seconds: float, questions: int, ask: Ask) -> list[Answer]:
    answers = []
    for _ in range(questions):
        await asyncio.sleep(seconds * random.uniform(1.0, 1.4))
        answers.append(await ask(question()))
    return answers


@asynccontextmanager
async def bare_rows(client: httpx2.AsyncClient, base_url: str, width: int) -> AsyncIterator[None]:
    """`width` clients write rows like the job's, one after the other, while the block lasts."""
    recipe = parse(RECIPE)
    rows = itertools.count()

    async def write() -> None:
        for index in rows:
            body = row_body(recipe, index)
            async with client.stream("POST", f"{base_url}/chat/completions", json=body) as answer:
                async for _ in answer.aiter_bytes():
                    pass

    writers = [asyncio.create_task(write()) for _ in range(width)]
    try:
        await asyncio.sleep(SETTLE_SECONDS)
        yield
    finally:
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        await asyncio.sleep(0.5)


class RunningJob:
    """A job and what it has written."""

    def __init__(self, stack: Stack, server: httpx2.AsyncClient, root: str, pk: int) -> None:
        self._database = f"file:{stack.data / 'workbench.sqlite3'}?mode=ro"
        self._server, self._root, self._pk = server, root, pk

    async def useful(self) -> tuple[float, int]:
        """(now, tokens of accepted rows and of those being written). Not while a question runs."""
        slots = (await self._server.get(f"{self._root}/slots")).json()
        being_written = sum(
            slot["next_token"][0]["n_decoded"] for slot in slots if slot["is_processing"]
        )
        with closing(sqlite3.connect(self._database, uri=True)) as database:
            accepted = database.execute(
                "SELECT COALESCE(SUM(completion_tokens), 0) FROM batch_item"
                " WHERE status = 'accepted' AND batch_id ="
                " (SELECT batch_id FROM generation_job WHERE id = ?)",
                [self._pk],
            ).fetchone()[0]
        return time.monotonic(), accepted + being_written

    async def busy(self) -> int:
        slots = (await self._server.get(f"{self._root}/slots")).json()
        return sum(slot["is_processing"] for slot in slots)


@asynccontextmanager
async def job_on_all_slots(
    workbench: Workbench, stack: Stack, server: httpx2.AsyncClient, root: str
) -> AsyncIterator[RunningJob]:
    pk = await workbench.queue(RECIPE, ROWS)
    job = RunningJob(stack, server, root, pk)
    try:
        while await job.busy() < SLOTS:
            await asyncio.sleep(0.5)
        await asyncio.sleep(SETTLE_SECONDS)
        yield job
    finally:
        await workbench.client.post(f"{workbench.api}/jobs/{pk}/cancel")
        while await job.busy():
            await asyncio.sleep(0.5)


async def beside(side: Side, job: RunningJob, asking: Awaitable[list[Answer]]) -> None:
    """Asks beside the job and measures what the job wrote meanwhile."""
    start, before = await job.useful()
    answers = await asking
    end, after = await job.useful()
    side.answers += answers
    side.beside.append((after - before) / (end - start))
    side.shares.append(sum(answer.total for answer in answers) / (SLOTS * (end - start)))


async def alone(job: RunningJob) -> float:
    """Useful tokens a second."""
    start, before = await job.useful()
    await asyncio.sleep(ALONE_SECONDS)
    end, after = await job.useful()
    return (after - before) / (end - start)


async def measure(llama: LlamaProcess, stack: Stack, rounds: int, questions: int) -> None:
    key = stack.manage("create_api_key", "bench").split()[-1]
    names = ("idle", "one free", "full", "reserved", "take over")
    sides = {name: Side() for name in names}
    async with (
        httpx2.AsyncClient(
            timeout=600, headers={"Authorization": f"Bearer {llama.api_key}"}, limits=FRESH
        ) as server,
        httpx2.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {key}"}) as web,
    ):
        workbench = Workbench(web, f"{stack.url}/api/v1")
        direct = asks_directly(server, llama.base_url)
        ours = asks_workbench(web, workbench.api)
        await one_every(0, 2, direct)  # opens files and connections, warms caches
        await one_every(0, 2, ours)
        for _ in range(rounds):
            sides["idle"].answers += await one_every(EVERY_SECONDS, questions, direct)
            for name, width in (("one free", SLOTS - 1), ("full", SLOTS)):
                async with bare_rows(server, llama.base_url, width):
                    sides[name].answers += await one_every(EVERY_SECONDS, questions, direct)
            async with job_on_all_slots(workbench, stack, server, llama.root_url) as job:
                rate = await alone(job)
                # The first one takes a slot over; from then on one is left free.
                sides["take over"].answers += await one_every(0, 1, ours)
                await beside(sides["reserved"], job, one_every(EVERY_SECONDS, questions, ours))
                await asyncio.sleep(IDLE_AFTER_CHAT + SETTLE_SECONDS)
                pauses = one_after_pauses(IDLE_AFTER_CHAT + 2, questions, ours)
                await beside(sides["take over"], job, pauses)
                rate = (rate + await alone(job)) / 2
            sides["reserved"].alone.append(rate)
            sides["take over"].alone.append(rate)
    report(sides)


def report(sides: dict[str, Side]) -> None:
    print("             questions  TTFT p50, ms  p95, ms   max, ms")
    for name, side in sides.items():
        print(
            f"{name:12} {len(side.answers):9} {side.ttft(0.5):13.0f} {side.ttft(0.95):8.0f} "
            f"{side.ttft(1):9.0f}"
        )
    limit = sides["one free"].ttft(0.95)
    for name in ("reserved", "take over"):
        verdict(
            f"{name}: p95 / p95 of one free", sides[name].ttft(0.95) / limit, TTFT_BAR, at_most=True
        )
    print("             job alone, tokens/s  beside questions   fall  questions' share    rest")
    for name in ("reserved", "take over"):
        side = sides[name]
        before, after = statistics.mean(side.alone), statistics.mean(side.beside)
        share, fall = statistics.mean(side.shares), 1 - after / before
        print(
            f"{name:12} {before:20.1f} {after:17.1f} {fall:6.3f} {share:17.3f} {fall - share:7.3f}"
        )
        verdict(f"{name}: fall beyond their own share", fall - share, COST_BAR, at_most=True)
    kept_free = 1 / SLOTS - statistics.mean(sides["reserved"].shares)
    print(f"The free slot stood idle for {kept_free:.3f} of the slots' time while it was reserved.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=8, help="of each kind in a round")
    options = parser.parse_args()
    random.seed(7)
    model = write_model(width=512, layers=8)
    with LlamaProcess(
        model, "--metrics", parallel=SLOTS, context_per_slot=1024, threads=1
    ) as llama:
        settings = {
            "LLM_BASE_URL": llama.base_url,
            "LLM_API_KEY": llama.api_key,
            "LLM_KV_UNIFIED": "false",
            "EMBED_BASE_URL": llama.base_url,  # not used: no second model is started
            "WORKBENCH_IDLE_AFTER_CHAT": str(IDLE_AFTER_CHAT),
        }
        with Stack(settings) as stack:
            asyncio.run(measure(llama, stack, options.rounds, options.questions))


if __name__ == "__main__":
    main()
