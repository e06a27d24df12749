"""A generation job beside a bare asyncio loop: rows per second, slots in use, cached prompt.

The whole workbench runs as a person starts it, pointed at a real llama.cpp of its own with the demo
model. The documented example job is queued over the API; while it runs, the server's `/slots` and
`/metrics` are asked every quarter of a second how many requests it works on and how many it has
put off for want of a slot. Before and after, the very same requests are sent by a bare asyncio loop
of the same width that keeps nothing.

Run: `.venv/bin/python -m bench.generate [--rows 200] [--slots 4]`. Nothing else should be running.
"""

import argparse
import asyncio
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from apps.generation.recipe import Recipe, parse, render_row
from tests.llama_process import LlamaProcess
from tests.stack import Stack
from tests.tiny_gguf import write_tiny_gguf

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo" / "workbench-demo.gguf"
SAMPLE_SECONDS = 0.25
SEED = 7
# llama.cpp sometimes closes a connection just when the next request is on its way: a loop that
# does not try again needs a new one each time, which costs nothing on one machine.
FRESH = httpx2.Limits(max_keepalive_connections=0)
RECIPE: dict[str, Any] = {
    "system": "You write realistic synthetic data.",
    "prompt": "Write a {{ sentiment }} review of a {{ product }}.",
    "attributes": {
        "sentiment": ["positive", "negative"],
        "product": ["kettle", "toaster", "desk lamp", "backpack", "laptop", "keyboard"],
    },
    "schema": {
        "type": "object",
        "required": ["text", "label"],
        "properties": {
            "text": {"type": "string", "maxLength": 300},
            "label": {"type": "string", "enum": ["positive", "negative"]},
        },
    },
    "params": {"temperature": 0.9, "min_p": 0.05, "max_tokens": 200},
}


@dataclass
class Watch:
    """What the server said of itself while a side was at work."""

    busy: list[int] = field(default_factory=list)
    processing: list[float] = field(default_factory=list)
    deferred: list[float] = field(default_factory=list)

    def occupancy(self, slots: int) -> float:
        """Mean share of slots in use, from the first sample at work to the last."""
        at_work = [at for at, busy in enumerate(self.busy) if busy]
        samples = self.busy[at_work[0] : at_work[-1] + 1] if at_work else [0]
        return statistics.mean(samples) / slots


async def sample(client: httpx2.AsyncClient, root: str, watch: Watch) -> None:
    while True:
        slots, metrics = await asyncio.gather(
            client.get(f"{root}/slots"), client.get(f"{root}/metrics")
        )
        watch.busy.append(sum(slot["is_processing"] for slot in slots.json()))
        values = dict(
            line.removeprefix("llamacpp:").rsplit(" ", 1)
            for line in metrics.text.splitlines()
            if not line.startswith("#")
        )
        watch.processing.append(float(values["requests_processing"]))
        watch.deferred.append(float(values["requests_deferred"]))
        await asyncio.sleep(SAMPLE_SECONDS)


@asynccontextmanager
async def watched(client: httpx2.AsyncClient, root: str, watch: Watch) -> AsyncIterator[None]:
    sampling = asyncio.create_task(sample(client, root, watch))
    try:
        yield
    finally:
        sampling.cancel()


async def bare_loop(
    client: httpx2.AsyncClient, base_url: str, recipe: Recipe, rows: int, width: int
) -> float:
    """Seconds for the same requests, sent by `width` coroutines that do nothing else."""
    left = iter(range(rows))

    async def worker() -> None:
        for index in left:
            row = render_row(recipe, index, SEED)
            body = {
                "model": "any",
                "messages": list(row.messages),
                "max_tokens": recipe.max_tokens,
                "stream": True,
                "stream_options": {"include_usage": True},
                "response_format": recipe.response_format,
                "seed": row.seed,
                **recipe.sampling,
            }
            async with client.stream("POST", f"{base_url}/chat/completions", json=body) as answer:
                answer.raise_for_status()
                async for _ in answer.aiter_bytes():
                    pass

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(width)))
    return time.perf_counter() - start


async def job(
    client: httpx2.AsyncClient, api: str, key: str, rows: int
) -> tuple[dict[str, Any], float]:
    """The job as it ended, and the seconds from queueing to its end."""
    headers = {"Authorization": f"Bearer {key}"}
    body = {"name": "Bench", "rows": rows, "seed": SEED, "recipe": RECIPE}
    start = time.perf_counter()
    answer = await client.post(f"{api}/jobs", json=body, headers=headers)
    answer.raise_for_status()
    while True:
        shown = (await client.get(f"{api}/jobs/{answer.json()['id']}", headers=headers)).json()
        if shown["status"] not in {"queued", "running"}:
            return shown, time.perf_counter() - start
        await asyncio.sleep(0.5)


async def all_rows(client: httpx2.AsyncClient, api: str, key: str, pk: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after = ""
    while True:
        path = f"{api}/jobs/{pk}/rows?limit=1000{after}"
        page = (await client.get(path, headers={"Authorization": f"Bearer {key}"})).json()
        rows += page["items"]
        if page["next"] is None:
            return rows
        after = f"&after={page['next']}"


async def compare(llama: LlamaProcess, stack: Stack, rows: int, slots: int) -> None:
    key = stack.manage("create_api_key", "bench").split()[-1]
    api = f"{stack.url}/api/v1"
    recipe = parse(RECIPE)
    server_key = {"Authorization": f"Bearer {llama.api_key}"}
    async with (
        httpx2.AsyncClient(timeout=600, headers=server_key, limits=FRESH) as server,
        httpx2.AsyncClient(timeout=60) as web,
    ):
        await bare_loop(server, llama.base_url, recipe, 2 * slots, slots)  # warms every slot
        beside, watch = Watch(), Watch()
        async with watched(server, llama.root_url, beside):
            before = await bare_loop(server, llama.base_url, recipe, rows, slots)
        async with watched(server, llama.root_url, watch):
            shown, seconds = await job(web, api, key, rows)
        async with watched(server, llama.root_url, beside):
            after = await bare_loop(server, llama.base_url, recipe, rows, slots)
        found = await all_rows(web, api, key, shown["id"])
    report(shown, found, watch, rows=rows, slots=slots, seconds=seconds, bare=(before, after))
    print(f"  /slots busy under the bare loop: mean {beside.occupancy(slots):.3f} of {slots}")


def report(
    shown: dict[str, Any],
    found: list[dict[str, Any]],
    watch: Watch,
    *,
    rows: int,
    slots: int,
    seconds: float,
    bare: tuple[float, float],
) -> None:
    bare_rate = rows / statistics.mean(bare)
    indices = [row["index"] for row in found]
    silent = [row for row in found if row["status"] != "accepted" and not row["reason"]]
    reasons = Counter(row["reason"].split(" of row")[0] for row in found if row["reason"])
    most = max(map(sum, zip(watch.processing, watch.deferred, strict=True)))
    print(f"{rows} rows on {slots} slots: {shown['status']}, {shown['counts']}")
    print(f"  missing or doubled {rows - len(set(indices)) + len(indices) - len(set(indices))}")
    print(f"  not accepted and without a reason {len(silent)}; reasons {dict(reasons)}")
    print(f"  /slots busy: most {max(watch.busy)}, mean {watch.occupancy(slots):.3f} of {slots}")
    print(f"  requests at the server: most {most:.0f}, of them put off {max(watch.deferred):.0f}")
    print(f"  cached share of the prompts {shown['cached_share']:.3f}")
    print(f"  job: {shown['rows_per_s']:.2f} rows/s while at work, {seconds:.1f} s in all")
    print(f"  bare loop: {rows / bare[0]:.2f} and {rows / bare[1]:.2f} rows/s")
    print(f"  job / bare: {shown['rows_per_s'] / bare_rate:.3f}")
    assert sorted(indices) == list(range(rows)), "a row is missing or there twice"
    assert not silent, "a row was dropped without a reason"
    assert max(watch.busy) == slots, "not every slot was ever busy"
    assert most <= slots, "more requests than slots"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="of the model server")
    options = parser.parse_args()
    model = DEMO if DEMO.exists() else write_tiny_gguf(ROOT / "bench" / "data" / "tiny.gguf")
    with LlamaProcess(
        model,
        "--metrics",
        parallel=options.slots,
        context_per_slot=2048,
        threads=options.threads,
    ) as llama:
        settings = {
            "LLM_BASE_URL": llama.base_url,
            "LLM_API_KEY": llama.api_key,
            "EMBED_BASE_URL": llama.base_url,  # not used: no second model is started
        }
        with Stack(settings) as stack:
            asyncio.run(compare(llama, stack, options.rows, options.slots))


if __name__ == "__main__":
    main()
