"""What slot files are worth: a preset after a restart of the model server, and a job of 100 rows.

The model server is started anew before each question. A chat with a preset of 2,000 tokens asks it
at once: with `--slot-save-path` the preset comes from the file that an earlier chat left, without
the flag it is processed. Then a job with the same system prompt runs on four fresh slots; the
server's own counter says how many tokens it processed, those of warming the slots included.

Run: `.venv/bin/python -m bench.slot_files [--rounds 5] [--llama-server PATH]`, alone.
"""

import argparse
import asyncio
import statistics
from pathlib import Path
from typing import Any

import httpx2

from bench.chat.read_ahead import Asked, ask
from bench.jobs import Workbench, verdict
from bench.model import write_model
from tests.llama_process import LlamaProcess
from tests.stack import Stack

SLOTS, CONTEXT = 4, 4096
PRESET = "You are a patient clerk of a small shop for kettles. " * 39  # 2,067 tokens of this model
QUESTION = "Where is the kettle?"
ROWS = 100
RECIPE = {"system": PRESET, "prompt": "Write a review.", "params": {"max_tokens": 8}}
# An earlier chat is saved at idle.
SETTLE_SECONDS = 3.0
FIRST_TOKEN_BAR, CACHED_BAR = 5.0, 0.95
JOB_BAR = 1.5  # once, and what each request has of its own


class Server:
    """The model server, with and without its folder for slot files."""

    def __init__(self, llama: LlamaProcess, program: str, model: Path) -> None:
        self.llama = llama
        folder = llama.folder / "slots"
        folder.mkdir()
        if program:
            llama.command = [
                *(program, "-m", str(model), "--port", str(llama.port), "-t", "1", "--metrics"),
                *("-np", str(SLOTS), "-c", str(SLOTS * CONTEXT), "--api-key", llama.api_key),
            ]
        self._command, self._saving = llama.command, ["--slot-save-path", f"{folder}/"]

    async def restart(self, browser: httpx2.AsyncClient, url: str, *, saves: bool) -> None:
        await asyncio.to_thread(self.llama.stop)
        self.llama.command = self._command + (self._saving if saves else [])
        await asyncio.to_thread(self.llama.start)
        await asyncio.sleep(SETTLE_SECONDS)
        page = f"{url}/servers/"
        headers = {"x-csrftoken": browser.cookies["workbench_csrf"], "referer": page}
        reply = await browser.post(f"{page}1/check/", headers=headers)  # its flags are others now
        assert reply.status_code == 200, reply.text


async def first_token(
    server: Server,
    stack: Stack,
    clients: tuple[httpx2.AsyncClient, httpx2.AsyncClient],
    rounds: int,
) -> dict[bool, list[Asked]]:
    """Seconds to the first token and cached share, by whether the server saves slots."""
    program, browser = clients
    api = f"{stack.url}/api/v1"
    body = {"name": "Clerk", "text": PRESET}
    stored = await program.post(f"{api}/system-prompts", json=body)
    assert stored.status_code == 201, (stored.status_code, stored.text)
    prompt = stored.json()["id"]

    async def new_chat() -> int:
        answer = await program.post(f"{api}/conversations", json={"system_prompt": prompt})
        assert answer.status_code == 201, (answer.status_code, answer.text)
        return int(answer.json()["id"])

    await server.restart(browser, stack.url, saves=True)
    await open_page(browser, stack, await new_chat())
    await asyncio.sleep(SETTLE_SECONDS)
    found: dict[bool, list[Asked]] = {True: [], False: []}
    for _ in range(rounds):
        for saves in (False, True):
            await server.restart(browser, stack.url, saves=saves)
            found[saves].append(await ask(program, api, await new_chat(), QUESTION))
            await asyncio.sleep(SETTLE_SECONDS)
    return found


async def open_page(browser: httpx2.AsyncClient, stack: Stack, chat: int) -> None:
    """Open a chat as a browser does, which has its prompt processed at idle, and saved."""
    page = f"{stack.url}/chat/{chat}/"
    await browser.get(page)
    headers = {"x-csrftoken": browser.cookies["workbench_csrf"], "referer": page}
    reply = await browser.post(f"{page}ahead/", data={"draft": ""}, headers=headers)
    assert reply.status_code == 204, reply.text


async def job(
    server: Server, stack: Stack, clients: tuple[httpx2.AsyncClient, httpx2.AsyncClient]
) -> dict[bool, tuple[float, float]]:
    """Tokens that the server processed for a job, and seconds, by whether it saves slots."""
    program, browser = clients
    workbench = Workbench(program, f"{stack.url}/api/v1")
    found = {}
    for saves in (False, True):
        await server.restart(browser, stack.url, saves=saves)
        before = server.llama.metrics()["prompt_tokens_total"]
        shown, seconds = await workbench.job(recipe_of(saves), ROWS)
        counts: dict[str, Any] = shown["counts"]
        assert counts.get("failed", 0) == 0, shown
        found[saves] = server.llama.metrics()["prompt_tokens_total"] - before, seconds
    return found


def recipe_of(saves: bool) -> dict[str, Any]:
    """The recipe; as long as ever, but with a beginning that no file has yet."""
    return RECIPE | {"system": f"{'Yes' if saves else 'Now'}: {PRESET}"}


async def both(server: Server, stack: Stack, rounds: int) -> None:
    key = stack.manage("create_api_key", "bench").split()[-1]
    async with (
        httpx2.AsyncClient(timeout=120, headers={"authorization": f"Bearer {key}"}) as program,
        httpx2.AsyncClient(timeout=120, follow_redirects=True) as browser,
    ):
        await browser.get(stack.login_url)
        token = browser.cookies["workbench_csrf"]
        await browser.post(stack.login_url, headers={"X-CSRFToken": token})
        asked = await first_token(server, stack, (program, browser), rounds)
        processed = await job(server, stack, (program, browser))
    print("a preset after a restart     first token, ms, median (all)     cached share")
    medians = {}
    for saves, found in sorted(asked.items()):
        medians[saves] = statistics.median(seconds for seconds, _ in found)
        every = " ".join(f"{seconds * 1000:.0f}" for seconds, _ in found)
        cached = statistics.median(share for _, share in found)
        name = "restored" if saves else "computed"
        print(f"  {name:22} {medians[saves] * 1000:8.0f}   ({every})    {cached:.3f}")
    verdict("computed / restored", medians[False] / medians[True], FIRST_TOKEN_BAR)
    verdict("cached share", min(share for _, share in asked[True]), CACHED_BAR)
    print(f"a job of {ROWS} rows with that beginning on {SLOTS} slots: tokens processed, seconds")
    for saves, (tokens, seconds) in sorted(processed.items()):
        name = "with slot files" if saves else "without"
        times = tokens / len(PRESET)
        print(f"  {name:22} {tokens:8.0f} {seconds:8.1f}   {times:.2f} times the prompt")
    verdict("times it was processed", processed[True][0] / len(PRESET), JOB_BAR, at_most=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--llama-server", default="", help="instead of the embedded server")
    options = parser.parse_args()
    model = write_model(width=512, layers=8)
    process = LlamaProcess(model, "--metrics", parallel=SLOTS, context_per_slot=CONTEXT, threads=1)
    server = Server(process, options.llama_server, model)
    with process as llama:
        settings = {
            "LLM_BASE_URL": llama.base_url,
            "LLM_API_KEY": llama.api_key,
            "LLM_KV_UNIFIED": "false",
            "EMBED_BASE_URL": llama.base_url,  # not used: no second model is started
            "WORKBENCH_TITLES": "false",
        }
        with Stack(settings) as stack:
            asyncio.run(both(server, stack, options.rounds))


if __name__ == "__main__":
    main()
