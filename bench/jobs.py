"""What the benches of jobs share: a job over the API, the same rows by a bare loop, and a watch.

The watch asks the model server five times a second what it is doing. Its counters of seconds are
exact: they add up, over all slots, how long prompts were read and tokens written.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from apps.generation.recipe.recipe import Recipe
from apps.generation.rows.replay import render_row

SAMPLE_SECONDS = 0.2
SEED = 7
# llama.cpp closes a connection after each streamed answer, sometimes just when the next request is
# on its way: a loop that does not try again needs a new one each time, as the server does.
FRESH = httpx2.Limits(max_keepalive_connections=0)


@dataclass
class Watch:
    """What the server said of itself while a side was at work."""

    at: list[float] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    processing: list[float] = field(default_factory=list)
    deferred: list[float] = field(default_factory=list)
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)

    @property
    def _at_work(self) -> slice:
        """From the first sample at work to the last."""
        found = [at for at, busy in enumerate(self.busy) if busy] or [0]
        return slice(found[0], found[-1] + 1)

    @property
    def seconds(self) -> float:
        """From the first busy slot to the last, to within two samples."""
        times = self.at[self._at_work]
        return times[-1] - times[0] + SAMPLE_SECONDS

    def occupancy(self, slots: int) -> float:
        """Mean share of slots in use."""
        return statistics.mean(self.busy[self._at_work]) / slots

    def counted(self, name: str) -> float:
        """By how much a counter of the server grew."""
        return self.after[name] - self.before[name]

    @property
    def slot_seconds(self) -> float:
        """How long slots read and wrote, together, by the server's own clock."""
        return self.counted("prompt_seconds_total") + self.counted("tokens_predicted_seconds_total")

    @property
    def most(self) -> float:
        """The most requests ever seen at the server, put off or not."""
        return max(map(sum, zip(self.processing, self.deferred, strict=True)))


async def metrics(client: httpx2.AsyncClient, root: str) -> dict[str, float]:
    answer = await client.get(f"{root}/metrics")
    lines = [line for line in answer.text.splitlines() if line and not line.startswith("#")]
    pairs = (line.removeprefix("llamacpp:").rsplit(" ", 1) for line in lines)
    return {name: float(value) for name, value in pairs}


async def _sample(client: httpx2.AsyncClient, root: str, watch: Watch) -> None:
    due = time.monotonic()
    while True:
        slots, values = await asyncio.gather(client.get(f"{root}/slots"), metrics(client, root))
        watch.at.append(time.monotonic())
        watch.busy.append(sum(slot["is_processing"] for slot in slots.json()))
        watch.processing.append(values["requests_processing"])
        watch.deferred.append(values["requests_deferred"])
        due += SAMPLE_SECONDS
        await asyncio.sleep(max(0.0, due - time.monotonic()))


@asynccontextmanager
async def watched(client: httpx2.AsyncClient, root: str) -> AsyncIterator[Watch]:
    """Complete at the end of the block."""
    watch = Watch(before=await metrics(client, root))
    sampling = asyncio.create_task(_sample(client, root, watch))
    try:
        yield watch
    finally:
        sampling.cancel()
    watch.after = await metrics(client, root)


def row_body(recipe: Recipe, index: int) -> dict[str, Any]:
    """The request that row `index` of the job is."""
    row = render_row(recipe, index, SEED)
    return {
        "model": "any",
        "messages": list(row.messages),
        "max_tokens": recipe.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": recipe.requests[0].response_format,
        "seed": row.seed,
        **recipe.requests[0].params,
    }


async def bare_loop(
    client: httpx2.AsyncClient, base_url: str, recipe: Recipe, rows: int, width: int
) -> float:
    """Seconds for the same requests, sent by `width` coroutines that do nothing else."""
    left = iter(range(rows))

    async def worker() -> None:
        for index in left:
            body = row_body(recipe, index)
            async with client.stream("POST", f"{base_url}/chat/completions", json=body) as answer:
                answer.raise_for_status()
                async for _ in answer.aiter_bytes():
                    pass

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(width)))
    return time.perf_counter() - start


@dataclass(frozen=True)
class Workbench:
    """The API of a running workbench, for one person's program."""

    client: httpx2.AsyncClient
    api: str

    async def queue(self, recipe: dict[str, Any], rows: int) -> int:
        """Starts a job and returns its id."""
        body = {"name": "Bench", "rows": rows, "seed": SEED, "recipe": recipe}
        answer = await self.client.post(f"{self.api}/jobs", json=body)
        answer.raise_for_status()
        return int(answer.json()["id"])

    async def shown(self, job: int) -> dict[str, Any]:
        answer = await self.client.get(f"{self.api}/jobs/{job}")
        answer.raise_for_status()
        shown: dict[str, Any] = answer.json()
        return shown

    async def ended(self, job: int) -> dict[str, Any]:
        """The job, when it has ended."""
        while (shown := await self.shown(job))["status"] in {"queued", "running"}:
            await asyncio.sleep(0.5)
        return shown

    async def job(self, recipe: dict[str, Any], rows: int) -> tuple[dict[str, Any], float]:
        """A job as it ended, and the seconds from queueing to its end."""
        start = time.perf_counter()
        shown = await self.ended(await self.queue(recipe, rows))
        return shown, time.perf_counter() - start

    async def all_rows(self, job: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        after = ""
        while True:
            path = f"{self.api}/jobs/{job}/rows?limit=1000{after}"
            page = (await self.client.get(path)).json()
            rows += page["items"]
            if page["next"] is None:
                return rows
            after = f"&after={page['next']}"


def verdict(what: str, found: float, bar: float, *, at_most: bool = False) -> bool:
    """Prints a criterion beside what was found, with yes or no."""
    good = found <= bar if at_most else found >= bar
    sign = "<=" if at_most else ">="
    print(f"  {'yes' if good else 'NO ':3}  {what}: {found:.3f} {sign} {bar:g}")
    return good
