"""A job beside a bare asyncio loop: how full are the slots, and how fast is it?

Rows of very uneven length (20 to 400 letters, a function of each row's seed) on a real llama.cpp
whose model writes a token in about 5 ms with four slots busy, so that a row takes half a second:
what the workbench does between two rows of a slot shows ten times as clearly as with a model that
takes five. A bare asyncio client of the same width, which keeps nothing and checks nothing, sends
the same rows with the same seeds before and after. A job of 200 rows runs first: with it the
workbench measures which width is best, once for this server.

Three measures of the same thing, all the server's: its `/slots`, Reviewed five times a second; its
counters of the seconds in which prompts were read and tokens written, which miss nothing but what a
slot does between the two; and its mean of busy slots per decode.

A shorter job runs through a relay that counts requests on the wire.

Run: `.venv/bin/python -m bench.batch.occupancy [--rows 1000] [--slots 4 8]`. Nothing else should be
running.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from apps.generation.recipe.parse import parse
from apps.generation.recipe.recipe import Recipe
from bench.batch.wire import End, counted
from bench.jobs import FRESH, Watch, Workbench, bare_loop, verdict, watched
from bench.model import write_model
from tests.llama_process import LlamaProcess
from tests.stack import Stack

RECIPE: dict[str, Any] = {
    "system": "You write texts.",
    "prompt": "Write about a {{ thing }}.",
    "attributes": {"thing": ["kettle", "toaster", "desk lamp", "backpack", "laptop", "keyboard"]},
    "schema": {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string", "minLength": 20, "maxLength": 400}},
    },
    "params": {"temperature": 0.9, "max_tokens": 450},
}
FEWER_ROWS = 200
OCCUPANCY_BAR = 0.97
RATE_BAR = 0.98


@dataclass(frozen=True)
class Side:
    name: str
    watch: Watch

    @property
    def rate(self) -> float:
        """Tokens/s from the first busy slot to the last."""
        return self.watch.counted("tokens_predicted_total") / self.watch.seconds

    def shares(self, slots: int) -> tuple[float, float]:
        """Busy-slot time as sampled, and by the server's counters."""
        by_counters = self.watch.slot_seconds / (slots * self.watch.seconds)
        return self.watch.occupancy(slots), by_counters


async def bare_side(
    server: httpx2.AsyncClient, llama: LlamaProcess, recipe: Recipe, rows: int, slots: int
) -> Side:
    async with watched(server, llama.root_url) as watch:
        await bare_loop(server, llama.base_url, recipe, rows, slots)
    return Side("bare", watch)


async def compare(llama: LlamaProcess, stack: Stack, rows: int, slots: int) -> float:
    """Returns the job's rate / the bare client's."""
    recipe = parse(RECIPE)
    async with clients(llama, stack) as (server, workbench):
        await bare_side(server, llama, recipe, 2 * slots, slots)  # warms up
        await workbench.job(RECIPE, min(FEWER_ROWS, rows))  # measures the width
        sides = [await bare_side(server, llama, recipe, rows, slots)]
        async with watched(server, llama.root_url) as watch:
            shown, seconds = await workbench.job(RECIPE, rows)
        sides += [Side("job", watch), await bare_side(server, llama, recipe, rows, slots)]
        found = await workbench.all_rows(shown["id"])
    return report(sides, shown, found, rows=rows, slots=slots, seconds=seconds)


class clients:
    """The model server's client and the workbench's API, for as long as the block lasts."""

    def __init__(self, llama: LlamaProcess, stack: Stack) -> None:
        key = stack.manage("create_api_key", "bench").split()[-1]
        self._server = httpx2.AsyncClient(
            timeout=600, headers={"Authorization": f"Bearer {llama.api_key}"}, limits=FRESH
        )
        self._web = httpx2.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {key}"})
        self._workbench = Workbench(self._web, f"{stack.url}/api/v1")

    async def __aenter__(self) -> tuple[httpx2.AsyncClient, Workbench]:
        return self._server, self._workbench

    async def __aexit__(self, *_: object) -> None:
        await self._server.aclose()
        await self._web.aclose()


def report(
    sides: list[Side],
    shown: dict[str, Any],
    found: list[dict[str, Any]],
    *,
    rows: int,
    slots: int,
    seconds: float,
) -> float:
    """Prints what was found. Returns the job's rate / the bare client's."""
    lengths = sorted(row["usage"]["completion_tokens"] for row in found if row.get("usage"))
    print(f"{rows} rows on {slots} slots: {shown['status']}, {shown['counts']}")
    if lengths:
        tenths = [lengths[len(lengths) * part // 10] for part in (1, 5, 9)]
        print(
            f"  tokens in a row: a tenth under {tenths[0]}, half {tenths[1]}, a tenth over "
            f"{tenths[2]}; {seconds:.0f} s from queueing to the end"
        )
    print("        rows/s  tokens/s  /slots  counters  per decode  put off")
    for side in sides:
        sampled, counters = side.shares(slots)
        watch = side.watch
        per_decode = watch.after["n_busy_slots_per_decode"]
        print(
            f"  {side.name:5} {rows / watch.seconds:6.2f} {side.rate:9.1f} {sampled:7.3f} "
            f"{counters:9.3f} {per_decode:11.3f} {max(watch.deferred):8.0f}"
        )
    job = sides[1]
    share = job.rate / ((sides[0].rate + sides[2].rate) / 2)
    verdict("busy-slot time / (slots x wall)", min(job.shares(slots)), OCCUPANCY_BAR)
    verdict("rate / bare client's", share, RATE_BAR)
    verdict("requests put off by the server", max(job.watch.deferred), 0, at_most=True)
    problems = Counter(row["reason"] for row in found if row["status"] != "accepted")
    assert sorted(row["index"] for row in found) == list(range(rows)), "a row is missing or doubled"
    assert not problems, problems
    return share


async def on_the_wire(llama: LlamaProcess, rows: int, slots: int) -> None:
    """A new server's first job through a relay that sees every request, for even a moment.

    It measures the width first, with 1, half and all slots; that cuts off no row.
    """
    async with counted(llama.port) as wire:
        stack = await asyncio.to_thread(workbench_of(llama, wire.base_url).__enter__)
        try:
            async with clients(llama, stack) as (_, workbench):
                shown, _ = await workbench.job(RECIPE, rows)
                found = await workbench.all_rows(shown["id"])
        finally:
            await asyncio.to_thread(stack.__exit__, None, None, None)
    print(f"  on the wire: {len(wire.requests)} requests for {rows} rows, {shown['status']}")
    for end, requests in wire.ends().most_common():
        print(f"    {requests:4} {end or 'still open at the end'}")
    states = Counter(f"{row['status']} {row['reason']}".strip() for row in found)
    tries = sum(row["attempts"] for row in found)
    print(f"    rows made: {dict(states)}, {tries} tries of them in all")
    verdict("requests at the server at once", wire.most, slots, at_most=True)
    answered = wire.ends()[End.ANSWERED]
    verdict("answers that no row was made of", answered - len(found), 0, at_most=True)
    verdict("rows that were asked for again", wire.answered_again(), 0, at_most=True)
    verdict("answers cut off by the workbench", wire.ends()[End.LEFT], 0, at_most=True)


def workbench_of(llama: LlamaProcess, base_url: str) -> Stack:
    return Stack(
        {
            "LLM_BASE_URL": base_url,
            "LLM_API_KEY": llama.api_key,
            "LLM_KV_UNIFIED": "false",
            "EMBED_BASE_URL": llama.base_url,  # not used: no second model is started
        }
    )


@contextmanager
def model_server(slots: int) -> Iterator[LlamaProcess]:
    model = write_model(width=256, layers=4)
    with LlamaProcess(
        model, "--metrics", parallel=slots, context_per_slot=2048, threads=1
    ) as llama:
        yield llama


def measure(llama: LlamaProcess, rows: int, slots: int) -> float:
    """Returns the job's rate / the bare client's."""
    with workbench_of(llama, llama.base_url) as stack:
        share = asyncio.run(compare(llama, stack, rows, slots))
    asyncio.run(on_the_wire(llama, min(FEWER_ROWS, rows), slots))
    return share


def options(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about.splitlines()[0] if about else "")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--slots", type=int, nargs="+", default=[4, 8])
    return parser


def main() -> None:
    asked = options(__doc__).parse_args()
    for slots in asked.slots:
        with model_server(slots) as llama:
            measure(llama, asked.rows, slots)


if __name__ == "__main__":
    main()
