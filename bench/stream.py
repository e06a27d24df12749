"""What the workbench adds to a streamed answer: time to first token and CPU per token.

The same questions go to the same model server twice, directly and through the workbench's HTTP
API, in alternating rounds of one run: 1, 8 and 32 chats at a time. Two servers are used:

- `llama`: real llama.cpp with 32 slots and the demo model, writing as fast as it can;
- `paced`: a stand-in that writes one token every 20 ms on every connection, the pace of a large
  model on a GPU. llama.cpp on a CPU cannot keep that pace 32 times over, and what is measured
  here is ours, not the model's.

Run: `.venv/bin/python -m bench.stream [--rounds 5]`. Nothing else should be running.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil

from tests.llama_process import LlamaProcess, free_port
from tests.stack import Stack

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo" / "workbench-demo.gguf"
TOKENS = 100
PACE_SECONDS = 0.02
CHATS = (1, 8, 32)
KEY = LlamaProcess.api_key


@dataclass
class Answer:
    """What one client saw of one answer. Times in seconds."""

    first_token: float
    total: float
    tokens: int


@dataclass
class Side:
    answers: list[Answer] = field(default_factory=list)
    cpu_seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return sum(answer.tokens for answer in self.answers)

    @property
    def ttft_ms(self) -> float:
        return statistics.median(answer.first_token for answer in self.answers) * 1000

    @property
    def tokens_per_second(self) -> float:
        return statistics.median(answer.tokens / answer.total for answer in self.answers)


async def lines(response: httpx2.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        yield line


async def ask_directly(client: httpx2.AsyncClient, base_url: str, question: str) -> Answer:
    body = {
        "model": "any",
        "messages": [{"role": "user", "content": question}],
        "max_tokens": TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    start = time.perf_counter()
    first, tokens = 0.0, 0
    async with client.stream("POST", f"{base_url}/chat/completions", json=body) as response:
        async for line in lines(response):
            if not line.startswith("data: {"):
                continue
            data = json.loads(line[6:])
            if not first and any(c["delta"].get("content") for c in data["choices"]):
                first = time.perf_counter() - start
            if usage := data.get("usage"):
                tokens = usage["completion_tokens"]
    return Answer(first, time.perf_counter() - start, tokens)


async def new_conversation(client: httpx2.AsyncClient, url: str) -> int:
    return int((await client.post(f"{url}/conversations", json={})).json()["id"])


async def ask_workbench(
    client: httpx2.AsyncClient, url: str, conversation: int, question: str
) -> Answer:
    """A question in a conversation without any, as a browser asks it: a POST, then the events."""
    body = {"content": question, "params": {"max_tokens": TOKENS}}
    start = time.perf_counter()
    reply = await client.post(f"{url}/conversations/{conversation}/messages", json=body)
    assert reply.status_code == 202, reply.text
    events = f"{url}/answers/{reply.json()['answer']['id']}/events"
    first, tokens, event = 0.0, 0, ""
    async with client.stream("GET", events) as response:
        async for line in lines(response):
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
                if not first and event in {"token", "snapshot"} and data["text"]:
                    first = time.perf_counter() - start
                elif event == "usage":
                    tokens = data["completion_tokens"]
                elif event in {"done", "error"}:
                    assert event == "done", data
                    break
    return Answer(first, time.perf_counter() - start, tokens)


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def measure(
    base_url: str, stack: Stack, key: str, chats: int, rounds: int
) -> tuple[Side, Side]:
    direct, ours = Side(), Side()
    web = stack.processes("uvicorn")[0]
    limits = httpx2.Limits(max_connections=200, max_keepalive_connections=200)
    async with (
        httpx2.AsyncClient(
            headers={"authorization": f"Bearer {KEY}"}, timeout=120, limits=limits
        ) as to_server,
        httpx2.AsyncClient(
            headers={"authorization": f"Bearer {key}"}, timeout=120, limits=limits
        ) as to_workbench,
    ):
        api = f"{stack.url}/api/v1"
        for number in range(rounds + 1):
            questions = [f"Hello, this is chat {i} of round {number}." for i in range(chats)]
            one = await asyncio.gather(
                *(ask_directly(to_server, base_url, question) for question in questions)
            )
            conversations = [await new_conversation(to_workbench, api) for _ in questions]
            await asyncio.sleep(0.3)
            before = cpu_seconds(web)
            two = await asyncio.gather(
                *(
                    ask_workbench(to_workbench, api, conversation, question)
                    for conversation, question in zip(conversations, questions, strict=True)
                )
            )
            after = cpu_seconds(web)
            await asyncio.sleep(0.3)
            if number:  # the first round opens connections and warms caches
                direct.answers += one
                ours.answers += two
                ours.cpu_seconds += after - before
    return direct, ours


@contextmanager
def paced_server() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.paced_server", str(port)], cwd=ROOT)
    try:
        root = f"http://127.0.0.1:{port}"
        while True:
            try:
                httpx2.get(f"{root}/health")
                break
            except httpx2.ConnectError:
                time.sleep(0.05)
        yield f"{root}/v1"
    finally:
        process.kill()
        process.wait()


@contextmanager
def llama_server() -> Iterator[str]:
    with LlamaProcess(DEMO, parallel=32, context_per_slot=512) as process:
        yield process.base_url


def report(name: str, base_url: str, rounds: int) -> None:
    servers = {"LLM_BASE_URL": base_url, "EMBED_BASE_URL": base_url, "LLM_API_KEY": KEY}
    with Stack(servers) as stack:
        key = subprocess.run(
            [sys.executable, "manage.py", "create_api_key", "bench"],
            cwd=ROOT,
            env=stack.env,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for chats in CHATS:
            direct, ours = asyncio.run(measure(base_url, stack, key, chats, rounds))
            print(
                f"{name:6} {chats:5} | {direct.ttft_ms:9.1f} {ours.ttft_ms:9.1f} "
                f"{ours.ttft_ms - direct.ttft_ms:+9.1f} | "
                f"{ours.tokens_per_second / direct.tokens_per_second:8.3f} | "
                f"{ours.cpu_seconds / ours.tokens * 1000:8.3f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("              | TTFT, ms, median             | tokens/s | CPU of the web")
    print("server chats  |    direct      ours     added | / direct | process, ms/token")
    with paced_server() as base_url:
        report("paced", base_url, rounds)
    if DEMO.exists():
        with llama_server() as base_url:
            report("llama", base_url, rounds)
    else:
        print(f"llama: skipped, there is no {DEMO.name}")


if __name__ == "__main__":
    main()
