"""A job on three model servers beside the same rows on one, and a server that goes meanwhile.

Each server is a real llama.cpp with 8 slots behind `bench.paced_relay`, which passes a token on
every 30 ms: the slots are as busy as with a model that people use, and the CPU is not the limit.

- `one`: a part of the rows on one server alone, after a short job;
- `three`: all rows on three, after a short job;
- `kill and add`: a job starts on three; one is killed, and then a fourth one added.

Run: `.venv/bin/python -m bench.batch.pool [--rows 2000]`. Nothing else should be running, except
with `--kill-and-add`, which does nothing but the last, with all rows: it is no measurement.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from typing import Any

import httpx2

from bench.jobs import FRESH, SEED, Workbench, verdict
from bench.model import CACHE
from tests.llama_process import LlamaProcess, free_port
from tests.stack import Stack
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import until

SLOTS, PACE_MS = 8, 30
PART = 3
"""The job on one server, and the one with a kill, have a third of the rows."""
WARM_UP_ROWS = 60
"""Of a job before each measurement: in it the width of new servers is measured, once."""
RATE_BAR = 2.8
RECIPE: dict[str, Any] = {
    "prompt": "Write about a {{ thing }}.",
    "attributes": {"thing": ["kettle", "toaster", "desk lamp", "backpack", "laptop", "keyboard"]},
    "schema": {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string", "minLength": 20, "maxLength": 20}},
    },
    "params": {"temperature": 0.9, "max_tokens": 60},
}


class Box:
    """A model server behind its relay."""

    def __init__(self, stack: ExitStack, name: str) -> None:
        self.name, self.port = name, free_port()
        model = write_tiny_gguf(CACHE / "pool-tiny.gguf")
        self.llama = stack.enter_context(LlamaProcess(model, parallel=SLOTS))
        ports = [str(self.port), str(self.llama.port), str(PACE_MS)]
        self.relay = subprocess.Popen([sys.executable, "-m", "bench.paced_relay", *ports])
        stack.callback(self.kill)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def kill(self) -> None:
        self.relay.kill()
        self.relay.wait()
        self.llama.kill()


class Pool:
    """The servers and jobs of a workbench."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench, self._client = workbench, workbench.client

    async def add(self, box: Box) -> None:
        """Add a server."""
        body = {"name": box.name, "base_url": box.base_url, "api_key": box.llama.api_key}
        answer = await self._client.post(f"{self._workbench.api}/servers", json=body)
        answer.raise_for_status()

    async def add_all(self, boxes: list[Box]) -> None:
        for box in boxes:
            await self.add(box)

    async def queue(self, rows: int, server: int, *, all_servers: bool) -> int:
        body = {"name": "Bench", "rows": rows, "seed": SEED, "recipe": RECIPE, "server": server}
        body |= {"all_servers": all_servers}
        answer = await self._client.post(f"{self._workbench.api}/jobs", json=body)
        answer.raise_for_status()
        return int(answer.json()["id"])

    async def rate(self, rows: int, server: int, *, all_servers: bool) -> float:
        """Rows/s of a job, from queueing to its end."""
        start = time.perf_counter()
        job = await self.queue(rows, server, all_servers=all_servers)
        shown = await self._workbench.ended(job)
        seconds = time.perf_counter() - start
        parts = ", ".join(f"{found['name']} {found['rows']}" for found in shown["servers"])
        print(f"  {rows} rows in {seconds:.1f} s: {rows / seconds:.2f} rows/s ({parts or 'alone'})")
        await self.check(job, rows)
        return rows / seconds

    async def warm_up(self, server: int, *, all_servers: bool) -> None:
        rows = 3 * WARM_UP_ROWS if all_servers else WARM_UP_ROWS
        await self._workbench.ended(await self.queue(rows, server, all_servers=all_servers))

    async def rows_by_server(self, job: int) -> Counter[str]:
        shown = await self._workbench.shown(job)
        return Counter({found["name"]: found["rows"] for found in shown["servers"]})

    async def check(self, job: int, rows: int) -> None:
        """Print what was lost, doubled and failed."""
        found = await self._workbench.all_rows(job)
        indices = Counter(row["index"] for row in found)
        lost = len(set(range(rows)) - set(indices))
        doubled = sum(count - 1 for count in indices.values())
        statuses = Counter(row["status"] for row in found)
        print(f"  lost {lost}, doubled {doubled}, {dict(statuses)}")
        verdict(
            "rows lost, doubled, failed or open", _bad(lost + doubled, statuses), 0, at_most=True
        )

    async def kill_and_add(self, rows: int, server: int, victim: Box, late: Box) -> None:
        """A server is killed at a quarter of the rows, another one added at half of them."""
        job = await self.queue(rows, server, all_servers=True)

        async def finished(share: float) -> None:
            async def is_there() -> bool:
                return (await self.rows_by_server(job)).total() >= share * rows

            await until(is_there, within=300)

        await finished(0.25)
        victim.kill()
        await finished(0.5)
        await self.add(late)
        await self._workbench.ended(job)
        shares = await self.rows_by_server(job)
        print(f"  {dict(shares)}")
        await self.check(job, rows)
        verdict("rows of the added server", shares[late.name], 1)


def _bad(count: int, statuses: Counter[str]) -> int:
    return count + sum(statuses[status] for status in ("failed", "pending", "running"))


async def measure(stack: Stack, boxes: list[Box], rows: int, *, only_kill_and_add: bool) -> None:
    key = stack.manage("create_api_key", "bench").split()[-1]
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(timeout=600, headers=headers, limits=FRESH) as client:
        workbench = Workbench(client, f"{stack.url}/api/v1")
        pool = Pool(workbench)
        first = (await client.get(f"{workbench.api}/servers")).json()["items"][0]["id"]
        if only_kill_and_add:
            await pool.add_all(boxes[1:3])
            return await pool.kill_and_add(rows, first, boxes[1], boxes[3])
        await pool.warm_up(first, all_servers=False)
        print("one")
        one = await pool.rate(rows // PART, first, all_servers=False)
        await pool.add_all(boxes[1:3])
        await pool.warm_up(first, all_servers=True)
        print("three")
        three = await pool.rate(rows, first, all_servers=True)
        verdict("three / one", three / one, RATE_BAR)
        print("kill and add")
        await pool.kill_and_add(rows // PART, first, boxes[1], boxes[3])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--kill-and-add", action="store_true")
    options = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    with ExitStack() as processes:
        boxes = [Box(processes, f"Box {number}") for number in range(1, 5)]
        settings = {
            "LLM_BASE_URL": boxes[0].base_url,
            "LLM_API_KEY": boxes[0].llama.api_key,
            "EMBED_BASE_URL": boxes[0].base_url,  # not used: no second model is started
        }
        with Stack(settings) as stack:
            work = measure(stack, boxes, options.rows, only_kill_and_add=options.kill_and_add)
            asyncio.run(work)


if __name__ == "__main__":
    main()
