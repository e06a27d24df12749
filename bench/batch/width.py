"""Does a job find how many requests at once a server answers that does not report it?

The server's throughput is known for each width: it works on so many requests at once, each at the
same pace, and more in flight share what that comes to (`tests/standins/saturating.py`). A bare
asyncio loop sweeps over widths first. Then a job runs that knows nothing of the server; the width
that the workbench has found is held against the best of the sweep.

Run: `.venv/bin/python -m bench.batch.width [--slots 6 16] [--rows 600]`. Nothing else should be
running.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx2

from bench.jobs import FRESH, Workbench, verdict
from tests.stack import Stack
from tests.standins import Model, Standin

TOKENS = 40
TOKENS_PER_SECOND = 40.0
SWEEP_SECONDS = 8.0
RECIPE: dict[str, Any] = {"prompt": "Write a text.", "params": {"max_tokens": TOKENS}}
NEAR = 0.2


@dataclass(frozen=True)
class Found:
    width: int
    source: str
    after: float
    """Seconds from the start of the job until the width stayed the same."""
    tokens_per_s: float


def swept_widths(slots: int) -> list[int]:
    return sorted({1, 2, 4, slots // 2, slots, slots + slots // 4, 2 * slots, 3 * slots})


async def sweep(standin: Standin, widths: Iterable[int]) -> dict[int, float]:
    """Tokens/s by width, of a loop that does nothing else."""
    async with httpx2.AsyncClient(timeout=60, limits=FRESH) as client:
        return {width: await _rate(client, standin.base_url, width) for width in widths}


async def _rate(client: httpx2.AsyncClient, base_url: str, width: int) -> float:
    ends = time.perf_counter() + SWEEP_SECONDS
    numbers = iter(range(1_000_000))
    tokens = seconds = 0.0

    async def work() -> None:
        nonlocal tokens, seconds
        while (began := time.perf_counter()) < ends:
            written = await _answer(client, base_url, next(numbers))
            tokens += written
            seconds += time.perf_counter() - began

    await asyncio.gather(*(work() for _ in range(width)))
    return width * tokens / seconds


async def _answer(client: httpx2.AsyncClient, base_url: str, seed: int) -> int:
    body = {"model": "m", "messages": [], "max_tokens": TOKENS, "seed": seed * 7919, "stream": True}
    answer = await client.post(f"{base_url}/chat/completions", json=body)
    chunks = (line[5:] for line in answer.text.splitlines() if '"completion_tokens"' in line)
    return int(json.loads(next(chunks))["usage"]["completion_tokens"])


async def job_finds(stack: Stack, rows: int) -> Found:
    key = stack.manage("create_api_key", "bench").split()[-1]
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(timeout=60, headers=headers) as client:
        workbench = Workbench(client, f"{stack.url}/api/v1")
        began, job = time.perf_counter(), await workbench.queue(RECIPE, rows)
        after, last = 0.0, 0
        rates: list[float] = []
        while (shown := await workbench.shown(job))["status"] in {"queued", "running"}:
            slots = await _slots(client, workbench.api)
            if slots["total"] != last:
                after, last, rates = time.perf_counter() - began, slots["total"], []
            elif shown.get("tokens_per_s"):
                rates.append(shown["tokens_per_s"])
            await asyncio.sleep(0.5)
        slots = await _slots(client, workbench.api)
    assert not shown["counts"]["failed"], shown["counts"]
    return Found(slots["total"], slots["source"], after, max(rates, default=0.0))


async def _slots(client: httpx2.AsyncClient, api: str) -> dict[str, Any]:
    servers = (await client.get(f"{api}/servers")).json()
    found = servers if isinstance(servers, list) else servers["items"]
    slots: dict[str, Any] = next(s for s in found if s["name"] == "Chat server")["slots"]
    return slots


def measure(slots: int, rows: int) -> bool:
    models = [Model("m", slots=slots)]
    with Standin(
        "saturating", None, models=models, tokens_per_second=TOKENS_PER_SECOND, is_uneven=True
    ) as standin:
        rates = asyncio.run(sweep(standin, swept_widths(slots)))
        env = {"LLM_BASE_URL": standin.base_url, "EMBED_BASE_URL": standin.base_url}
        with Stack(env) as stack:
            found = asyncio.run(job_finds(stack, rows))
        here = asyncio.run(sweep(standin, [found.width]))[found.width]
    best = max(rates.values())
    print(f"a server of {slots} requests at once; tokens/s by width in the sweep:")
    print("  " + ", ".join(f"{width}: {rate:.0f}" for width, rate in rates.items()))
    print(
        f"  found {found.width} ({found.source}) after {found.after:.0f} s; {here:.0f} tokens/s at "
        f"that width in the sweep, {found.tokens_per_s:.0f} in the job at most"
    )
    near = verdict("tokens/s at the found width / best of the sweep", here / best, 1 - NEAR)
    return near & verdict("found width / server's", found.width / slots, 1 + NEAR, at_most=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, nargs="+", default=[6, 16])
    parser.add_argument("--rows", type=int, default=600)
    args = parser.parse_args()
    good = [measure(slots, args.rows) for slots in args.slots]
    raise SystemExit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
