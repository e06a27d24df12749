"""What the workbench adds to a streamed answer: time to first token and CPU per token.

The same questions go to the same model server directly and through each side, in alternating
rounds of one run: 1, 8 and 32 chats at a time. The sides:

- `ours`: the workbench's HTTP API, one request: the POST is answered with the events;
- `ours, 2 requests`: a POST and then a GET of the events, as the pages do;
- `relay`: twenty lines of Django that pass the bytes on (bench/byte_relay.py), the least there is;
- `litellm`: LiteLLM's proxy, when `--litellm` names a virtual environment it is installed in
  (`pip install 'litellm[proxy]<1.109'`).

Two servers are asked: `llama` is real llama.cpp with 32 slots and the demo model, as fast as it
can; `paced` is a stand-in that writes one token every 20 ms on every connection, the pace of a
large model on a GPU: llama.cpp on a CPU cannot keep it 32 times over, and what is measured here is
ours, not the model's. At the end the stand-in writes as fast as it is read: the ceiling.

Run: `.venv/bin/python -m bench.chat.stream [--rounds 5] [--litellm VENV]`. Nothing else should run.
"""

import argparse
import asyncio
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import httpx2
import psutil
import uvloop
from openai import DefaultAioHttpClient  # noqa: TID251 - the client of the bench

from tests.llama_process import LlamaProcess, free_port
from tests.stack import Stack

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "demo" / "workbench-demo.gguf"
TOKENS = 100
CEILING_TOKENS = 3000
CEILING_CHATS = 8
CHATS = (1, 8, 32)
KEY = LlamaProcess.api_key
EVENTS = "text/event-stream"


@dataclass
class Answer:
    """What one client saw of one answer. Times in seconds."""

    first_token: float
    total: float
    tokens: int


class Asker(Protocol):
    async def prepare(self, client: httpx2.AsyncClient, model: str) -> str:
        """What can be done before the clock starts; where to ask."""

    async def ask(
        self, client: httpx2.AsyncClient, where: str, model: str, question: str, max_tokens: int
    ) -> Answer: ...


@dataclass
class Side:
    """One way to an answer. `process` is what stands in between; None: nothing does."""

    name: str
    asker: Asker
    key: str
    process: psutil.Process | None = None
    answers: list[Answer] = field(default_factory=list)
    cpu_seconds: float = 0.0
    rates: list[float] = field(default_factory=list)
    """Tokens/s of all chats together, of each round."""

    @property
    def tokens(self) -> int:
        return sum(answer.tokens for answer in self.answers)

    @property
    def ttft_ms(self) -> float:
        return statistics.median(answer.first_token for answer in self.answers) * 1000

    @property
    def ttft_p95_ms(self) -> float:
        times = sorted(answer.first_token for answer in self.answers)
        return times[min(len(times) - 1, int(len(times) * 0.95))] * 1000

    @property
    def tokens_per_second(self) -> float:
        return statistics.median(answer.tokens / answer.total for answer in self.answers)

    @property
    def cpu_ms(self) -> float:
        return self.cpu_seconds / self.tokens * 1000

    def clear(self) -> None:
        self.answers, self.cpu_seconds, self.rates = [], 0.0, []


# --- One answer ---------------------------------------------------------------------------------


async def lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The client shares the machine with what it measures: it reads with as little work as we."""
    rest = b""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for data in response.stream:
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line


@dataclass
class Completions:
    """The OpenAI way, of a model server and of a proxy."""

    base_url: str

    async def prepare(self, client: httpx2.AsyncClient, model: str) -> str:
        return f"{self.base_url}/chat/completions"

    async def ask(
        self, client: httpx2.AsyncClient, where: str, model: str, question: str, max_tokens: int
    ) -> Answer:
        body = {
            "model": model,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        start = time.perf_counter()
        first, tokens, pieces = 0.0, 0, 0
        async with client.stream("POST", where, json=body) as response:
            assert response.status_code == 200, await response.aread()
            async for line in lines(response):
                pieces += b'"content"' in line
                if not first and b"content" in line:
                    data = json.loads(line[6:])
                    if any(choice["delta"].get("content") for choice in data["choices"]):
                        first = time.perf_counter() - start
                elif b'"usage"' in line and (usage := json.loads(line[6:]).get("usage")):
                    tokens = usage["completion_tokens"]
        return Answer(first, time.perf_counter() - start, tokens or pieces)


@dataclass
class Workbench:
    """A question in a conversation without any: in one request, or as the pages ask."""

    api: str
    requests: int

    async def prepare(self, client: httpx2.AsyncClient, model: str) -> str:
        # With a title: else the model would be asked for one after the answer.
        body = {"model": model, "title": "Bench"}
        opened = await client.post(f"{self.api}/conversations", json=body)
        assert opened.status_code == 201, opened.text
        return f"{self.api}/conversations/{opened.json()['id']}/messages"

    async def ask(
        self, client: httpx2.AsyncClient, where: str, model: str, question: str, max_tokens: int
    ) -> Answer:
        body = {"content": question, "params": {"max_tokens": max_tokens}}
        start = time.perf_counter()
        if self.requests == 1:
            stream = client.stream("POST", where, json=body, headers={"accept": EVENTS})
        else:
            reply = await client.post(where, json=body)
            assert reply.status_code == 202, reply.text
            answer = reply.json()["answer"]["id"]
            stream = client.stream("GET", f"{self.api}/answers/{answer}/events")
        first, tokens, event = 0.0, 0, b""
        async with stream as response:
            assert response.status_code == 200, await response.aread()
            async for line in lines(response):
                if line.startswith(b"event: "):
                    event = line[7:]
                elif line.startswith(b"data: "):
                    if not first and event in {b"token", b"snapshot"}:
                        if json.loads(line[6:])["text"]:
                            first = time.perf_counter() - start
                    elif event == b"usage":
                        tokens = json.loads(line[6:])["completion_tokens"]
                    assert event != b"error", line
        return Answer(first, time.perf_counter() - start, tokens)


# --- Many ---------------------------------------------------------------------------------------


async def measure(
    sides: list[Side], *, model: str, chats: int, rounds: int, max_tokens: int
) -> None:
    """Every side in turn, `rounds` times, after one round that opens connections."""
    clients = {}
    for side in sides:
        side.clear()
        headers = {"authorization": f"Bearer {side.key}"}
        # uvicorn closes a connection after 5 s; a round of the other sides takes longer.
        limits = httpx2.Limits(max_connections=100, keepalive_expiry=4)
        clients[side.name] = DefaultAioHttpClient(headers=headers, limits=limits, timeout=120)
    for number in range(rounds + 1):
        for side in sides if number % 2 else reversed(sides):
            await one_round(side, clients[side.name], model, chats, max_tokens, number)
    for client in clients.values():
        await client.aclose()


async def one_round(
    side: Side, client: httpx2.AsyncClient, model: str, chats: int, max_tokens: int, number: int
) -> None:
    places = [await side.asker.prepare(client, model) for _ in range(chats)]
    await asyncio.sleep(0.3)
    before, start = cpu_seconds(side.process), time.perf_counter()
    answers = await asyncio.gather(
        *(
            side.asker.ask(client, where, model, f"This is chat {i} of round {number}.", max_tokens)
            for i, where in enumerate(places)
        )
    )
    wall, after = time.perf_counter() - start, cpu_seconds(side.process)
    assert all(answer.first_token for answer in answers), side.name
    if number:
        side.answers += answers
        side.cpu_seconds += after - before
        side.rates.append(sum(answer.tokens for answer in answers) / wall)


def cpu_seconds(process: psutil.Process | None) -> float:
    if process is None:
        return 0.0
    family = [process, *process.children(recursive=True)]
    return sum(sum(member.cpu_times()[:2]) for member in family)


# --- Who is asked -------------------------------------------------------------------------------


@contextmanager
def running(command: Sequence[str | Path], url: str, **env: str) -> Iterator[psutil.Process]:
    """A server, once it answers at `url`."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | env, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + 120
            while True:
                try:
                    httpx2.get(url)
                    break
                except httpx2.TransportError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        log.seek(0)
                        sys.exit(f"{command[0]} failed to start:\n{log.read().decode()[-3000:]}")
                    time.sleep(0.1)
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()


@contextmanager
def paced_server(context: int = 4096) -> Iterator[str]:
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "bench.paced_server", str(port), str(context)]
    with running(command, f"{root}/health"):
        yield f"{root}/v1"


@contextmanager
def llama_server() -> Iterator[str]:
    with LlamaProcess(DEMO, parallel=32, context_per_slot=512) as process:
        yield process.base_url


@contextmanager
def byte_relay(base_url: str) -> Iterator[Side]:
    port = free_port()
    command = [
        *(sys.executable, "-m", "uvicorn", "bench.byte_relay:application", "--port", str(port)),
        *("--loop", "uvloop", "--http", "httptools", "--lifespan", "off", "--no-access-log"),
    ]
    root = f"http://127.0.0.1:{port}"
    with running(command, f"{root}/health", BACKEND=base_url, BACKEND_KEY=KEY) as process:
        yield Side("relay", Completions(f"{root}/v1"), KEY, process)


@contextmanager
def litellm(venv: Path, base_url: str) -> Iterator[Side]:
    port, key = free_port(), f"sk-{secrets.token_urlsafe(32)}"
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": f"openai/{name}", "api_base": base_url, "api_key": KEY},
        }
        for name in ("paced", "unpaced", DEMO.stem)
    ]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"  # JSON is YAML
        config.write_text(json.dumps({"model_list": models}))
        command: list[str | Path] = [venv / "bin" / "litellm", "--config", config]
        root = f"http://127.0.0.1:{port}"
        with running(
            [*command, "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"],
            f"{root}/health/liveliness",
            LITELLM_LOCAL_MODEL_COST_MAP="True",
            LITELLM_MASTER_KEY=key,
            PATH=f"{venv / 'bin'}:{os.environ['PATH']}",
        ) as process:
            yield Side("litellm", Completions(f"{root}/v1"), key, process)


@contextmanager
def workbench(base_url: str) -> Iterator[list[Side]]:
    servers = {"LLM_BASE_URL": base_url, "EMBED_BASE_URL": base_url, "LLM_API_KEY": KEY}
    # A title is one more request after an answer; the other sides are asked for none.
    with Stack(servers | {"WORKBENCH_TITLES": "false"}) as stack:
        key = stack.manage("create_api_key", "bench").strip()
        api, (web, *_) = f"{stack.url}/api/v1", stack.processes("uvicorn")
        yield [
            Side("ours", Workbench(api, requests=1), key, web),
            Side("ours, 2 requests", Workbench(api, requests=2), key, web),
        ]


@contextmanager
def everybody(base_url: str, venv: Path | None) -> Iterator[list[Side]]:
    """The direct way first."""
    with ExitStack() as stack:
        sides = [Side("direct", Completions(base_url), KEY)]
        sides += stack.enter_context(workbench(base_url))
        sides.append(stack.enter_context(byte_relay(base_url)))
        if venv is not None:
            sides.append(stack.enter_context(litellm(venv, base_url)))
        yield sides


# --- What is printed ----------------------------------------------------------------------------

HEAD = """
server chats side             | TTFT, ms: median    p95   added | tokens/s  | CPU, ms
                              |                                 | / direct  | a token"""


def report(sides: list[Side], *, name: str, model: str, rounds: int) -> None:
    for chats in CHATS:
        uvloop.run(measure(sides, model=model, chats=chats, rounds=rounds, max_tokens=TOKENS))
        direct, *others = sides
        print(
            f"{name:6} {chats:5} {direct.name:16} |         {direct.ttft_ms:9.1f} "
            f"{direct.ttft_p95_ms:6.0f}         |           |",
            flush=True,
        )
        for side in others:
            print(
                f"{name:6} {chats:5} {side.name:16} |         {side.ttft_ms:9.1f} "
                f"{side.ttft_p95_ms:6.0f} {side.ttft_ms - direct.ttft_ms:+7.1f} | "
                f"{side.tokens_per_second / direct.tokens_per_second:9.3f} | {side.cpu_ms:7.3f}",
                flush=True,
            )


def report_ceiling(sides: list[Side], rounds: int) -> None:
    print(f"\nceiling: {CEILING_CHATS} chats, as fast as they are read")
    run = measure(
        sides, model="unpaced", chats=CEILING_CHATS, rounds=rounds, max_tokens=CEILING_TOKENS
    )
    uvloop.run(run)
    for side in sides:
        cpu = f"{side.cpu_ms:7.4f} ms of CPU a token" if side.process else ""
        print(f"{side.name:16} {statistics.median(side.rates):9,.0f} tokens/s {cpu}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--litellm", type=Path, metavar="VENV")
    parser.add_argument("--only", choices=["paced", "ceiling", "llama"], action="append")
    options = parser.parse_args()
    parts = options.only or ["paced", "ceiling", "llama"]
    venv: Path | None = options.litellm
    if venv is None or not (venv / "bin" / "litellm").exists():
        print("litellm: skipped, " + ("there is none in " + str(venv) if venv else "no --litellm"))
        venv = None
    if {"paced", "ceiling"} & set(parts):
        with paced_server() as base_url, everybody(base_url, venv) as sides:
            if "paced" in parts:
                print(HEAD)
                report(sides, name="paced", model="paced", rounds=options.rounds)
            if "ceiling" in parts:
                report_ceiling(sides, options.rounds)
    if "llama" not in parts:
        return
    if not DEMO.exists():
        print(f"llama: skipped, there is no {DEMO.name}")
        return
    with llama_server() as base_url, everybody(base_url, venv) as sides:
        print(HEAD)
        report(sides, name="llama", model=DEMO.stem, rounds=options.rounds)


if __name__ == "__main__":
    main()
