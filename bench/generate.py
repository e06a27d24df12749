"""A generation job beside a bare asyncio loop: rows per second, slots in use, cached prompt.

The whole workbench runs as a person starts it, pointed at a real llama.cpp of its own with the demo
model. The documented example job is queued over the API; while it runs, the server's `/slots` and
`/metrics` are asked five times a second how many requests it works on and how many it has
put off for want of a slot. Before and after, the very same requests are sent by a bare asyncio loop
of the same width that keeps nothing.

Run: `.venv/bin/python -m bench.generate [--rows 200] [--slots 4]`. Nothing else should be running.
"""

import argparse
import asyncio
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2

from apps.generation.recipe import parse
from bench.jobs import FRESH, Watch, Workbench, bare_loop, watched
from tests.llama_process import LlamaProcess
from tests.stack import Stack
from tests.tiny_gguf import write_tiny_gguf

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo" / "workbench-demo.gguf"
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


async def compare(llama: LlamaProcess, stack: Stack, rows: int, slots: int) -> None:
    key = stack.manage("create_api_key", "bench").split()[-1]
    recipe = parse(RECIPE)
    server_key = {"Authorization": f"Bearer {llama.api_key}"}
    web_key = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(timeout=600, headers=server_key, limits=FRESH) as server,
        httpx2.AsyncClient(timeout=60, headers=web_key) as web,
    ):
        workbench = Workbench(web, f"{stack.url}/api/v1")
        await bare_loop(server, llama.base_url, recipe, 2 * slots, slots)  # warms every slot
        async with watched(server, llama.root_url) as beside:
            before = await bare_loop(server, llama.base_url, recipe, rows, slots)
        async with watched(server, llama.root_url) as watch:
            shown, seconds = await workbench.job(RECIPE, rows)
        after = await bare_loop(server, llama.base_url, recipe, rows, slots)
        found = await workbench.all_rows(shown["id"])
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
    print(f"{rows} rows on {slots} slots: {shown['status']}, {shown['counts']}")
    print(f"  missing or doubled {rows - len(set(indices)) + len(indices) - len(set(indices))}")
    print(f"  not accepted and without a reason {len(silent)}; reasons {dict(reasons)}")
    print(f"  /slots busy: most {max(watch.busy)}, mean {watch.occupancy(slots):.3f} of {slots}")
    put_off = max(watch.deferred)
    print(f"  requests at the server: most {watch.most:.0f}, of them put off {put_off:.0f}")
    print(f"  cached share of the prompts {shown['cached_share']:.3f}")
    print(f"  job: {shown['rows_per_s']:.2f} rows/s while at work, {seconds:.1f} s in all")
    print(f"  bare loop: {rows / bare[0]:.2f} and {rows / bare[1]:.2f} rows/s")
    print(f"  job / bare: {shown['rows_per_s'] / bare_rate:.3f}")
    assert sorted(indices) == list(range(rows)), "a row is missing or there twice"
    assert not silent, "a row was dropped without a reason"
    assert max(watch.busy) == slots, "not every slot was ever busy"
    assert watch.most <= slots, "more requests than slots"


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
            "LLM_KV_UNIFIED": "false",
            "EMBED_BASE_URL": llama.base_url,  # not used: no second model is started
        }
        with Stack(settings) as stack:
            asyncio.run(compare(llama, stack, options.rows, options.slots))


if __name__ == "__main__":
    main()
