"""How long a question waits while a job keeps all slots of the model server busy.

A real llama.cpp with 4 slots, whose model writes a token every 20 ms with four slots busy and reads
a prompt at 2 ms a token: the times of a model of some billions of weights on a small GPU, so that a
few milliseconds of ours weigh what they would weigh there. Rows are 300 to 450 tokens long, 6 to 9
seconds each. Questions of 60 tokens, one every few seconds, are asked

- `idle`: directly, the server does nothing else;
- `one free`: directly, three bare clients write rows: the physical limit of a question that need
  not wait, because its prompt is read beside three answers being written;
- `full`: directly, four bare clients write rows;
- `closed`: the same, but one of the rows is closed in the moment of the question: the physical
  limit of a question that takes a slot, because llama.cpp notices that at its next token and then
  has begun another one;
- `reserved`: through a workbench in which jobs leave a slot free for so long after a question
  (WORKBENCH_IDLE_AFTER_CHAT) that the next one finds it;
- `take over`: through a workbench as it is set by default: the job is on all slots again soon
  after the last question, and the next one takes the slot of the youngest row;
- `program`: the same by another program, with OpenAI's API through the workbench's /v1;
- `agents`: by that program while 32 requests of another person's key, in the lane batch, want the
  slots instead of a job;

in alternating rounds of one run. What questions cost the job is measured in the same rounds: the
tokens of accepted rows and of those being written that will be, with and without questions. The
questions' own share is the time for which they had a slot; the rest of the fall is what the rule
of the free slot costs in one case, and in the other what it takes to Reprocessed what had been
written of the rows that were closed.

Run: `.venv/bin/python -m bench.batch.priority [--rounds 3] [--questions 8] [--only SIDE ...]`.
Nothing else should be running.
"""

import argparse
import asyncio
import itertools
import json
import math
import random
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import dataclass, field
from typing import Any

import httpx2

from apps.generation.recipe.parse import parse
from bench.jobs import FRESH, Workbench, row_body, verdict
from bench.model import write_model
from tests.llama_process import LlamaProcess
from tests.stack import Stack

SLOTS = 4
RESERVED_SECONDS = 10
ANSWER_TOKENS = 40
EVERY_SECONDS = 6.0
SETTLE_SECONDS = 3.0
LOOKS, LOOK_SECONDS = 10, 0.1
ALONE_SECONDS = 24.0
ROWS = 400
TTFT_BAR = 1.2
AGENTS = 32
BESIDE_A_JOB = ("reserved", "take over", "program")
SIDES = ("idle", "one free", "full", "closed", *BESIDE_A_JOB, "agents")
SOMEBODY_ELSE = """
from django.contrib.auth.models import User
from apps.core.models import ApiKey
print(ApiKey.issue(user=User.objects.create_user("agents"), name="agents")[1])
"""
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


EVENTS = {"accept": "text/event-stream"}
Ask = Callable[[str], Awaitable[Answer]]


def asks_directly(client: httpx2.AsyncClient, base_url: str, model: str = "any") -> Ask:
    async def ask(text: str) -> Answer:
        body = {
            "model": model,
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
        # With a title: else the model would be asked for one after the answer.
        made = await client.post(f"{api}/conversations", json={"title": "Bench"})
        assert made.status_code == 201, (made.status_code, made.text)
        url = f"{api}/conversations/{made.json()['id']}/messages"
        body = {"content": text, "params": {"max_tokens": ANSWER_TOKENS}}
        start, first, event = time.perf_counter(), 0.0, ""
        async with client.stream("POST", url, json=body, headers=EVENTS) as response:
            assert response.status_code == 200, await response.aread()
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


@asynccontextmanager
async def bare_rows(
    client: httpx2.AsyncClient, base_url: str, width: int, model: str = "any"
) -> AsyncIterator[Callable[[], AbstractContextManager[None]]]:
    """`width` clients write rows like the job's, In order, while the block lasts.

    Yields what closes one of them for a while.
    """
    recipe = parse(RECIPE)
    rows = itertools.count()

    async def write() -> None:
        for index in rows:
            body = row_body(recipe, index) | {"model": model}
            async with client.stream("POST", f"{base_url}/chat/completions", json=body) as answer:
                async for _ in answer.aiter_bytes():
                    pass

    writers = [asyncio.create_task(write()) for _ in range(width)]

    @contextmanager
    def one_closed() -> Iterator[None]:
        writers.pop(0).cancel()
        yield
        writers.append(asyncio.create_task(write()))

    try:
        await asyncio.sleep(SETTLE_SECONDS)
        yield one_closed
    finally:
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        await asyncio.sleep(0.5)


def closes_one(ask: Ask, one_closed: Callable[[], AbstractContextManager[None]]) -> Ask:
    async def asking(text: str) -> Answer:
        with one_closed():
            return await ask(text)

    return asking


class RunningJob:
    """A job and what it has written."""

    def __init__(self, stack: Stack, server: httpx2.AsyncClient, root: str, pk: int) -> None:
        self._database = f"file:{stack.data / 'workbench.sqlite3'}?mode=ro"
        self._server, self._root, self._pk = server, root, pk
        self._prompt = math.inf

    async def useful(self) -> tuple[float, int]:
        """(now, tokens of accepted rows and of those being written). Not while a question runs.

        The highest of some looks: a row that has ended is in neither until it is committed.
        """
        looks = []
        for _ in range(LOOKS):
            looks.append(await self._look())
            await asyncio.sleep(LOOK_SECONDS)
        return max(looks, key=lambda look: look[1])

    async def _look(self) -> tuple[float, int]:
        """A row that goes on where its slot was taken has what it had written in its prompt: what
        is longer than the shortest prompt seen counts as written."""
        # The rows first: one that ends just now is in neither, never in both.
        with closing(sqlite3.connect(self._database, uri=True)) as database:
            accepted = database.execute(
                "SELECT COALESCE(SUM(completion_tokens), 0) FROM batch_item"
                " WHERE status = 'accepted' AND batch_id ="
                " (SELECT batch_id FROM generation_job WHERE id = ?)",
                [self._pk],
            ).fetchone()[0]
        slots = (await self._server.get(f"{self._root}/slots")).json()
        there = [slot["n_prompt_tokens"] for slot in slots if slot["is_processing"]]
        decoded = [slot["next_token"][0]["n_decoded"] for slot in slots if slot["is_processing"]]
        prompts = (all_ - new for all_, new in zip(there, decoded, strict=True))
        self._prompt = min([self._prompt, *prompts])
        being_written = int(sum(tokens - self._prompt for tokens in there))
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


async def beside(
    side: Side, job: RunningJob, asking: Awaitable[list[Answer]], *, until_back: bool
) -> None:
    """Asks beside the job and measures what the job wrote meanwhile.

    Args:
        until_back: whether the last question's slot is to be the job's again before it ends.
    """
    start, before = await job.useful()
    answers = await asking
    while until_back and await job.busy() < SLOTS:
        await asyncio.sleep(0.02)
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


async def measure(
    llama: LlamaProcess, stacks: dict[str, Stack], names: list[str], rounds: int, questions: int
) -> None:
    sides = {name: Side() for name in names}
    async with AsyncExitStack() as clients:

        async def opened(key: str, **others: str) -> httpx2.AsyncClient:
            headers = {"Authorization": f"Bearer {key}", **others}
            client = httpx2.AsyncClient(timeout=600, headers=headers, limits=FRESH)
            return await clients.enter_async_context(client)

        server = await opened(llama.api_key)
        direct = asks_directly(server, llama.base_url)
        workbenches = {}
        await one_every(0, 2, direct)  # opens files, warms caches
        for name, stack in stacks.items():
            web = await opened(stack.manage("create_api_key", "bench").split()[-1])
            workbenches[name] = Workbench(web, f"{stack.url}/api/v1")
            await one_every(0, 2, asks_workbench(web, workbenches[name].api))
        default, web = stacks["take over"], workbenches["take over"].client
        gateway = f"{default.url}/v1"
        model = (await web.get(f"{gateway}/models")).json()["data"][0]["id"]
        by_program = asks_directly(web, gateway, model)
        said = default.manage("shell", "-c", SOMEBODY_ELSE)
        agents = await opened(said.split()[-1], **{"X-Workbench-Lane": "batch"})
        await one_every(0, 2, by_program)
        for _ in range(rounds):
            if "idle" in sides:
                sides["idle"].answers += await one_every(EVERY_SECONDS, questions, direct)
            widths = {"one free": SLOTS - 1, "full": SLOTS, "closed": SLOTS}
            for name in (name for name in widths if name in sides):
                async with bare_rows(server, llama.base_url, widths[name]) as one_closed:
                    ask = closes_one(direct, one_closed) if name == "closed" else direct
                    sides[name].answers += await one_every(EVERY_SECONDS, questions, ask)
            if "agents" in sides:
                async with bare_rows(agents, gateway, AGENTS, model):
                    asking = one_every(EVERY_SECONDS, questions, by_program)
                    sides["agents"].answers += await asking
            for name in (name for name in BESIDE_A_JOB if name in sides):
                of_pages = name in workbenches
                workbench = workbenches[name if of_pages else "take over"]
                stack = stacks[name if of_pages else "take over"]
                ask = asks_workbench(workbench.client, workbench.api) if of_pages else by_program
                side = sides[name]
                async with job_on_all_slots(workbench, stack, server, llama.root_url) as job:
                    rate = await alone(job)
                    if name == "reserved":  # the first one takes a slot over
                        await one_every(0, 1, ask)
                    asking = one_every(EVERY_SECONDS, questions, ask)
                    await beside(side, job, asking, until_back=name != "reserved")
                    while await job.busy() < SLOTS:
                        await asyncio.sleep(0.5)
                    side.alone.append((rate + await alone(job)) / 2)
    report(sides)


def report(sides: dict[str, Side]) -> None:
    print("             questions  TTFT p50, ms  p95, ms   max, ms")
    for name, side in sides.items():
        print(
            f"{name:12} {len(side.answers):9} {side.ttft(0.5):13.0f} {side.ttft(0.95):8.0f} "
            f"{side.ttft(1):9.0f}"
        )
    limit = sides["one free"].ttft(0.95)
    if "closed" in sides:
        print(f"closed: p95 / p95 of one free: {sides['closed'].ttft(0.95) / limit:.2f}")
    for name in (name for name in (*BESIDE_A_JOB, "agents") if name in sides):
        verdict(
            f"{name}: p95 / p95 of one free", sides[name].ttft(0.95) / limit, TTFT_BAR, at_most=True
        )
    print("             job alone, tokens/s  beside questions   fall  questions' share    rest")
    for name in (name for name in BESIDE_A_JOB if name in sides):
        side = sides[name]
        before, after = statistics.mean(side.alone), statistics.mean(side.beside)
        share, fall = statistics.mean(side.shares), 1 - after / before
        print(
            f"{name:12} {before:20.1f} {after:17.1f} {fall:6.3f} {share:17.3f} {fall - share:7.3f}"
        )
        verdict(f"{name}: fall beyond their own share", fall - share, COST_BAR, at_most=True)
    if "reserved" not in sides:
        return
    kept_free = 1 / SLOTS - statistics.mean(sides["reserved"].shares)
    print(f"The free slot stood idle for {kept_free:.3f} of the slots' time while it was reserved.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=8, help="of each kind in a round")
    parser.add_argument("--only", nargs="+", choices=SIDES, default=SIDES, metavar="SIDE")
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
        }
        reserving = settings | {"WORKBENCH_IDLE_AFTER_CHAT": str(RESERVED_SECONDS)}
        with Stack(reserving) as reserved, Stack(settings) as default:
            stacks = {"reserved": reserved, "take over": default}
            names = [name for name in SIDES if name in {"one free", *options.only}]
            asyncio.run(measure(llama, stacks, names, options.rounds, options.questions))


if __name__ == "__main__":
    main()
