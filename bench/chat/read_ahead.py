"""What reading a prompt ahead is worth: a conversation of 3,000 tokens, opened again cold.

The model server is started anew before each opening, so nothing of the conversation is in its
cache. Then the page is opened and a question typed for TYPING_SECONDS, as a browser tells it (the
same requests), and asked. Beside it the same without telling, in alternating rounds of one run.

Run: `.venv/bin/python -m bench.chat.read_ahead [--rounds 5]`. Nothing else should be running.
"""

import argparse
import asyncio
import json
import statistics
import time

import httpx2

from bench.jobs import verdict
from bench.model import write_model
from tests.llama_process import LlamaProcess
from tests.stack import Stack

QUESTION = "And what should we do with the kettle in the end?"
TYPING_SECONDS = 12.0  # 50 words a minute
TITLED_SECONDS = 6.0  # after these the model has given the conversation its title, too
WORDS = "kettle window garden letter mirror basket candle ladder "
PROMPT_BYTES = 2300  # 3,000 tokens of this model: a byte is one, a space is three
BAR = 5.0


Asked = tuple[float, float]


async def ask(program: httpx2.AsyncClient, api: str, pk: int, question: str) -> Asked:
    """Asks and reads to the end; seconds to the first token, and the prompt's cached share."""
    start = time.perf_counter()
    body = {"content": question, "params": {"max_tokens": 20}}
    headers = {"accept": "text/event-stream"}
    share = 0.0
    first, event, url = 0.0, "", f"{api}/conversations/{pk}/messages"
    async with program.stream("POST", url, json=body, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
                if not first and event in {"token", "snapshot"} and data["text"]:
                    first = time.perf_counter() - start
                assert event != "error", data
                if event == "usage":
                    share = data["cached_tokens"] / data["prompt_tokens"]
                if event == "done":
                    break
    return first, share


async def open_conversation(program: httpx2.AsyncClient, api: str) -> int:
    made = await program.post(f"{api}/conversations", json={})
    assert made.status_code == 201, (made.status_code, made.text)
    pk = int(made.json()["id"])
    await ask(program, api, pk, WORDS * (PROMPT_BYTES // len(WORDS)))
    return pk


async def tell(browser: httpx2.AsyncClient, stack: Stack, pk: int) -> None:
    """What the page sends while somebody types."""
    page = f"{stack.url}/chat/{pk}/"
    await browser.get(page)
    token = browser.cookies["workbench_csrf"]
    for draft in ("", QUESTION[:20], QUESTION):
        reply = await browser.post(
            f"{page}ahead/", data={"draft": draft}, headers={"x-csrftoken": token, "referer": page}
        )
        assert reply.status_code == 204, reply.text
        await asyncio.sleep(TYPING_SECONDS / 3)


async def measure(
    llama: LlamaProcess, stack: Stack, rounds: int
) -> tuple[list[Asked], list[Asked]]:
    api = f"{stack.url}/api/v1"
    key = stack.manage("create_api_key", "bench").split()[-1]
    with_it: list[Asked] = []
    without: list[Asked] = []
    async with (
        httpx2.AsyncClient(timeout=120, headers={"authorization": f"Bearer {key}"}) as program,
        httpx2.AsyncClient(timeout=120, follow_redirects=True) as browser,
    ):
        # The program's user and the browser's are the same person: whoever `up` made first.
        await browser.get(stack.login_url)
        token = browser.cookies["workbench_csrf"]
        await browser.post(stack.login_url, headers={"X-CSRFToken": token})
        for _ in range(rounds):
            for told in (False, True):
                pk = await open_conversation(program, api)
                await asyncio.sleep(TITLED_SECONDS)
                await asyncio.to_thread(llama.stop)
                await asyncio.to_thread(llama.start)
                await browser.get(f"{stack.url}/chat/")  # the workbench sees that it is back
                await asyncio.sleep(2)
                if told:
                    await tell(browser, stack, pk)
                else:
                    await asyncio.sleep(TYPING_SECONDS)
                (with_it if told else without).append(await ask(program, api, pk, QUESTION))
    return with_it, without


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    model = write_model(width=512, layers=8)
    with LlamaProcess(model, parallel=2, context_per_slot=4096, threads=1) as llama:
        settings = {
            "LLM_BASE_URL": llama.base_url,
            "LLM_API_KEY": llama.api_key,
            "LLM_KV_UNIFIED": "false",
            "EMBED_BASE_URL": llama.base_url,  # not used: no second model is started
        }
        with Stack(settings) as stack:
            with_it, without = asyncio.run(measure(llama, stack, rounds))
    print("a conversation opened cold    first token, ms, median (all)    cached share")
    medians = []
    for name, found in (("without reading ahead", without), ("with it", with_it)):
        every = " ".join(f"{seconds * 1000:.0f}" for seconds, _ in found)
        medians.append(statistics.median(seconds for seconds, _ in found))
        cached = statistics.median(share for _, share in found)
        print(f"  {name:22} {medians[-1] * 1000:8.0f}   ({every})    {cached:.3f}")
    verdict("without / with", medians[0] / medians[1], BAR)


if __name__ == "__main__":
    main()
