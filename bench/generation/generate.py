"""A job as `occupancy` measures it, one beside distilabel and one with a long constant prompt.

A job of 200 rows has a constant prompt of 1,000 tokens in front of each row, of which the cached
share is wanted; and distilabel, in a virtual environment of its own (`pip install
'distilabel[openai]' requests`), writes rows of the same task.

Run: `.venv/bin/python -m bench.generation.generate [--rows 1000] [--slots 4 8] [--distilabel
VENV]`. Nothing else should be running.
"""

import asyncio
import json
import os
from pathlib import Path

import httpx2

from apps.generation.recipe.parse import parse
from apps.generation.rows.replay import render_row
from bench.batch.occupancy import (
    FEWER_ROWS,
    RECIPE,
    Side,
    bare_side,
    clients,
    measure,
    model_server,
    options,
    workbench_of,
)
from bench.jobs import FRESH, SEED, verdict, watched
from tests.llama_process import LlamaProcess

SCRIPT = Path(__file__).with_name("distilabel_rows.py")
# Of the model, whose tokens are bytes: a constant prompt of a thousand of them.
PREFIX = (
    "Each text is of one thing, plain, and in the words of a person who uses it every day. " * 12
)
CACHED_BAR = 0.9
DISTILABEL_BAR = 1.5


async def cached_share(llama: LlamaProcess, rows: int) -> None:
    """Of the prompts of a job whose rows all begin with the same 1,000 tokens."""
    stack = await asyncio.to_thread(workbench_of(llama, llama.base_url).__enter__)
    try:
        async with clients(llama, stack) as (_, workbench):
            shown, _ = await workbench.job(RECIPE | {"system": PREFIX}, rows)
    finally:
        await asyncio.to_thread(stack.__exit__, None, None, None)
    verdict("cached share of the prompts", shown["cached_share"] or 0.0, CACHED_BAR)


async def by_distilabel(
    llama: LlamaProcess, venv: Path | None, rows: int, slots: int, share: float
) -> None:
    """Tokens/s of distilabel on the same task, from its first busy slot to its last.

    Right before and after it a bare client writes the same rows: a machine that others use too is
    faster in one minute than in another. What a job would have done then is its share of that.

    Args:
        share: the job's rate / the bare client's.
    """
    python = venv / "bin" / "python" if venv is not None else None
    if python is None or not python.exists():
        print("  distilabel: skipped, no virtual environment was named with --distilabel")
        return
    recipe = parse(RECIPE)
    asked = [render_row(recipe, index, SEED).messages[-1]["content"] for index in range(rows)]
    task = {
        "base_url": llama.base_url,
        "api_key": llama.api_key,
        "system": recipe.system_message,
        "prompts": asked,
        "max_tokens": recipe.max_tokens,
        "temperature": RECIPE["params"]["temperature"],
        "response_format": recipe.requests[0].response_format,
    }
    path = llama.folder / "distilabel.json"
    path.write_text(json.dumps(task))
    headers = {"Authorization": f"Bearer {llama.api_key}"}
    async with httpx2.AsyncClient(timeout=600, headers=headers, limits=FRESH) as server:
        bare = [await bare_side(server, llama, recipe, rows, slots)]
        async with watched(server, llama.root_url) as watch:
            process = await asyncio.create_subprocess_exec(
                *(python, SCRIPT, path),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=os.environ | {"HOME": str(llama.folder)},
            )
            said, _ = await process.communicate()
        bare.append(await bare_side(server, llama, recipe, rows, slots))
    if process.returncode:
        print(f"  distilabel: failed\n{said.decode(errors='replace')[-2000:]}")
        return
    side, by_bare = Side("distilabel", watch), sum(each.rate for each in bare) / len(bare)
    print(
        f"  distilabel: {said.decode().splitlines()[-1]}, {side.rate:.1f} tokens/s, occupancy "
        f"{min(side.shares(slots)):.3f}; the bare client {by_bare:.1f}"
    )
    verdict("rate / distilabel's", share * by_bare / side.rate, DISTILABEL_BAR)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--distilabel", type=Path, metavar="VENV")
    asked = parser.parse_args()
    fewer = min(FEWER_ROWS, asked.rows)
    for slots in asked.slots:
        with model_server(slots) as llama:
            share = measure(llama, asked.rows, slots)
            asyncio.run(by_distilabel(llama, asked.distilabel, fewer, slots, share))
            asyncio.run(cached_share(llama, fewer))


if __name__ == "__main__":
    main()
