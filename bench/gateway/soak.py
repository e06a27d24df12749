"""Ten people with 200 programs at once on four slots, for minutes, and a server that is killed.

Each program asks a real llama.cpp through the workbench's /v1, one request after the other, every
other one streamed, and waits as it is told to (Retry-After) where it gets a 429 or 503. The people
share by turns, so each should be answered as often as any other; with --uneven they have from 2 to
50 programs. With --lanes the last four ask in the lane batch and the others as agents: batch gets
less, and each of its people something all the time.
In the middle the model server is killed and started again. Printed are answers by person, requests
that got no answer, streams that were cut (the server died while they were written), and memory and
descriptors of the web process.

Run: `.venv/bin/python -m bench.gateway.soak [--minutes 10]`.
"""

import argparse
import asyncio
import itertools
import json
import math
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil

from bench.chat.stream import KEY
from bench.jobs import FRESH
from tests.llama_process import LlamaProcess
from tests.stack import Stack
from tests.tiny_gguf import write_tiny_gguf

SLOTS = 4
EVEN = (20,) * 10
UNEVEN = (2, 2, 5, 5, 10, 20, 30, 36, 40, 50)
MAX_TOKENS = 8
BATCH_PEOPLE = 4
EQUAL = 0.1
PEOPLE = """
from django.contrib.auth.models import User
from apps.core.models import ApiKey
for n in range({people}):
    print("KEY", ApiKey.issue(user=User.objects.create_user(f"person{{n}}"), name="soak")[1])
"""


@dataclass
class Found:
    answered: Counter[int] = field(default_factory=Counter)
    """By person."""
    asked: int = 0
    cut: int = 0
    """Streams that ended with an error event, or whose connection was closed."""
    waits: Counter[int] = field(default_factory=Counter)
    """By status."""
    failed: Counter[str] = field(default_factory=Counter)
    has_lanes: bool = False
    last_answer: dict[int, float] = field(default_factory=dict)
    longest_gap: Counter[int] = field(default_factory=Counter)
    """By person, in seconds, between two answers."""
    seen: set[int] = field(default_factory=set)
    """The seeds that were answered."""
    twice: int = 0

    def lane_of(self, person: int) -> str:
        if not self.has_lanes:
            return "person"
        return "batch" if person >= len(EVEN) - BATCH_PEOPLE else "agent"

    def record_answer(self, person: int, seed: int) -> None:
        self.answered[person] += 1
        self.twice += seed in self.seen
        self.seen.add(seed)
        now = time.monotonic()
        gap = math.ceil(now - self.last_answer.get(person, now))
        self.longest_gap[person] = max(self.longest_gap[person], gap)
        self.last_answer[person] = now


async def program(
    person: int, key: str, url: str, seeds: "itertools.count[int]", end: float, found: Found
) -> None:
    headers = {"Authorization": f"Bearer {key}", "User-Agent": f"soak{person}/1"}
    headers["X-Workbench-Lane"] = found.lane_of(person)
    async with httpx2.AsyncClient(headers=headers, timeout=600, limits=FRESH) as client:
        while time.monotonic() < end:
            found.asked += 1
            await one_request(client, person, url, next(seeds), found)


async def one_request(
    client: httpx2.AsyncClient, person: int, url: str, seed: int, found: Found
) -> None:
    body = {
        "messages": [{"role": "user", "content": f"Request {seed}."}],
        "max_tokens": MAX_TOKENS,
        "seed": seed,
        "stream": bool(seed % 2),
    }
    while True:
        try:
            answer = await client.post(url, json=body)
        except httpx2.TransportError as error:
            if body["stream"]:
                found.cut += 1
            else:
                found.failed[type(error).__name__] += 1
            return
        if answer.status_code in {429, 503}:
            found.waits[answer.status_code] += 1
            await asyncio.sleep(float(answer.headers["retry-after"]))
            continue
        if answer.status_code != 200:
            found.failed[f"{answer.status_code} {answer.text[:80]}"] += 1
        elif not body["stream"]:
            assert answer.json()["usage"]["completion_tokens"] > 0
            found.record_answer(person, seed)
        elif answer.text.rstrip().endswith("data: [DONE]"):
            found.record_answer(person, seed)
        else:
            found.cut += 1
        return


async def soak(
    stack: Stack, llama: LlamaProcess, programs: dict[str, int], seconds: float, has_lanes: bool
) -> None:
    (web, *_) = stack.processes("uvicorn")
    process, seeds = psutil.Process(web.pid), itertools.count(1)
    found = Found(has_lanes=has_lanes)
    start = time.monotonic()
    url, end = f"{stack.url}/v1/chat/completions", start + seconds
    running = [
        asyncio.create_task(program(person, key, url, seeds, end, found))
        for person, (key, count) in enumerate(programs.items())
        for _ in range(count)
    ]
    for tick in range(10):
        await asyncio.sleep(max(0.0, start + seconds * (tick + 1) / 10 - time.monotonic()))
        if tick == 5:
            await asyncio.to_thread(llama.kill)
            await asyncio.to_thread(llama.start)
        size = process.memory_info().rss / 2**20
        print(
            f"{time.monotonic() - start:5.0f} s: {found.answered.total():6} answered, "
            f"{size:5.0f} MiB, {process.num_fds()} descriptors",
            flush=True,
        )
    shared = Counter(found.answered)  # what each still waits for is not shared by turns
    await asyncio.gather(*running)
    report(found, shared, list(programs.values()), time.monotonic() - start)


def report(found: Found, shared: Counter[int], programs: list[int], seconds: float) -> None:
    print(f"\n{found.asked} requests in {seconds:.0f} s; {json.dumps(found.waits)} waits by status")
    for lane in dict.fromkeys(map(found.lane_of, range(len(programs)))):
        people = [person for person in range(len(programs)) if found.lane_of(person) == lane]
        mean = max(1.0, sum(shared[person] for person in people) / len(people))
        shares = {person: shared[person] / mean for person in people}
        for person, share in shares.items():
            print(
                f"{lane} {person}, {programs[person]:2} programs: {shared[person]:6} answered, "
                f"{share:.3f}, at most {found.longest_gap[person]} s between answers"
            )
        is_equal = all(abs(share - 1) <= EQUAL for share in shares.values())
        print(f"shares of {lane} within {EQUAL:.0%}: {'yes' if is_equal else 'NO'}")
    print(f"answered twice {found.twice}, cut streams {found.cut}, failed {dict(found.failed)}")
    missing = found.asked - found.answered.total() - found.cut - found.failed.total()
    print(f"without any outcome: {missing}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--uneven", action="store_true")
    parser.add_argument("--lanes", action="store_true")
    options = parser.parse_args()
    counts = UNEVEN if options.uneven else EVEN
    with (
        tempfile.TemporaryDirectory() as folder,
        LlamaProcess(
            write_tiny_gguf(Path(folder) / "tiny.gguf"), parallel=SLOTS, context_per_slot=512
        ) as llama,
    ):
        servers = {"LLM_BASE_URL": llama.base_url, "EMBED_BASE_URL": llama.base_url}
        with Stack(servers | {"LLM_API_KEY": KEY}) as stack:
            said = stack.manage("shell", "-c", PEOPLE.format(people=len(counts)))
            keys = [line.split()[1] for line in said.splitlines() if line.startswith("KEY ")]
            programs = dict(zip(keys, counts, strict=True))
            asyncio.run(soak(stack, llama, programs, options.minutes * 60, options.lanes))


if __name__ == "__main__":
    main()
