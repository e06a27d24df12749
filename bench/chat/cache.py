"""How much of a long conversation's prompts comes from the server's cache, and what that is worth.

The same questions, with answers of the same length, through three ways of keeping a history:

- `workbench`: append-only, and when the context is nearly full one deep cut;
- `last 20 messages`: the usual recipe of chat applications;
- `drop the oldest`: the oldest question and answer go as soon as the next would not fit.

40 turns in a context of 4,096 tokens, and 20 turns in 8,192, where nothing has to be cut. Each way
has a llama.cpp of its own that has seen nothing before, with two slots and default flags. Times are
to the first token, as the client of each sees it.

Run: `.venv/bin/python -m bench.chat.cache [--turns 40]`. Nothing else should be running.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from bench.jobs import verdict
from bench.model import write_model
from tests.llama_process import LlamaProcess
from tests.stack import Stack

SYSTEM = "You are a patient teacher. Explain step by step, and check that each step is understood."
WORDS = ["kettle", "window", "garden", "letter", "mirror", "basket", "candle", "ladder"]
QUESTION_WORDS = 10
ANSWER_TOKENS = 150
LAST_MESSAGES = 20
LAST_TURNS = 10
TEMPLATE_TOKENS = 40  # more than a message needs beside its text

Message = dict[str, str]


@dataclass(frozen=True)
class Turn:
    """What came of one question. Tokens as the server counted them, seconds as the client did."""

    prompt: int
    cached: int
    first_token: float


def questions(turns: int) -> list[str]:
    chosen = random.Random(7)  # the same for every side
    return [" ".join(chosen.choices(WORDS, k=QUESTION_WORDS)) for _ in range(turns)]


# --- Clients without a workbench ---------------------------------------------------


def last_messages(history: list[Message], context: int) -> list[Message]:
    return history[-LAST_MESSAGES + 1 :]


def drop_oldest(history: list[Message], context: int) -> list[Message]:
    """A token is a byte for the model of this bench, so this client even counts exactly."""
    room = context - ANSWER_TOKENS - len(SYSTEM) - 2 * TEMPLATE_TOKENS
    while sum(len(m["content"].encode()) + TEMPLATE_TOKENS for m in history) > room:
        history = history[2:]
    return history


Keep = Callable[[list[Message], int], list[Message]]


async def ask_directly(
    client: httpx2.AsyncClient, url: str, messages: list[Message]
) -> tuple[Turn, str]:
    body = {
        "messages": messages,
        "max_tokens": ANSWER_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    start = time.perf_counter()
    usage: dict[str, Any] = {}
    first, text = 0.0, ""
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            data = json.loads(line[6:])
            for choice in data.get("choices", ()):
                if piece := choice["delta"].get("content"):
                    first = first or time.perf_counter() - start
                    text += piece
            usage = data.get("usage") or usage
    assert usage, "The server refused the prompt."
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return Turn(usage["prompt_tokens"], cached, first), text


async def plain(llama: LlamaProcess, keep: Keep, context: int, turns: int) -> list[Turn]:
    history: list[Message] = []
    done = []
    headers = {"authorization": f"Bearer {llama.api_key}"}
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncClient(headers=headers, timeout=120, limits=limits) as client:
        for question in questions(turns):
            history.append({"role": "user", "content": question})
            kept = keep(history, context)
            system = {"role": "system", "content": SYSTEM}
            turn, text = await ask_directly(client, llama.base_url, [system, *kept])
            history.append({"role": "assistant", "content": text})
            done.append(turn)
    return done


# --- The workbench ------------------------------------------------------------------


async def ask_workbench(client: httpx2.AsyncClient, api: str, pk: int, question: str) -> Turn:
    body = {"content": question, "params": {"max_tokens": ANSWER_TOKENS}}
    start = time.perf_counter()
    reply = await client.post(f"{api}/conversations/{pk}/messages", json=body)
    assert reply.status_code == 202, reply.text
    usage: dict[str, Any] = {}
    first, event = 0.0, ""
    events = f"{api}/answers/{reply.json()['answer']['id']}/events"
    async with client.stream("GET", events) as response:
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
                if not first and event in {"token", "snapshot"} and data["text"]:
                    first = time.perf_counter() - start
                usage = data if event == "usage" else usage
                assert event != "error", data
                if event == "done":
                    break
    return Turn(usage["prompt_tokens"], usage["cached_tokens"], first)


async def through_workbench(stack: Stack, turns: int) -> list[Turn]:
    api = f"{stack.url}/api/v1"
    key = stack.manage("create_api_key", "bench").split()[-1]
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=120) as client:
        body = {"name": "Teacher", "text": SYSTEM}
        prompt = await client.post(f"{api}/system-prompts", json=body)
        assert prompt.status_code == 201, (prompt.status_code, prompt.text)
        settings = {"system_prompt": prompt.json()["id"]}
        made = await client.post(f"{api}/conversations", json=settings)
        assert made.status_code == 201, (made.status_code, made.text)
        pk = made.json()["id"]
        return [await ask_workbench(client, api, pk, q) for q in questions(turns)]


# --- Closest pairs ---------------------------------------------------------------------


def share(turns: list[Turn]) -> float:
    return sum(t.cached for t in turns) / sum(t.prompt for t in turns)


def late_ms(turns: list[Turn]) -> float:
    """Median time to the first token over the last turns, when the context has been full."""
    return statistics.median(t.first_token for t in turns[-LAST_TURNS:]) * 1000


def measure(model: Path, context: int, turns: int) -> dict[str, list[Turn]]:
    sides: dict[str, list[Turn]] = {}
    for name, keep in (("last 20 messages", last_messages), ("drop the oldest", drop_oldest)):
        with LlamaProcess(model, parallel=2, context_per_slot=context, threads=1) as llama:
            sides[name] = asyncio.run(plain(llama, keep, context, turns))
    with LlamaProcess(model, parallel=2, context_per_slot=context, threads=1) as llama:
        settings = {
            "LLM_BASE_URL": llama.base_url,
            "LLM_API_KEY": llama.api_key,
            "LLM_KV_UNIFIED": "false",
            "EMBED_BASE_URL": llama.base_url,  # not used: no second model is started
        }
        with Stack(settings) as stack:
            sides["workbench"] = asyncio.run(through_workbench(stack, turns))
    print(f"\n{turns} turns, context {context:,}          cached share   TTFT of the last ten, ms")
    for name, done in sides.items():
        print(f"  {name:18}                  {share(done):11.3f}   {late_ms(done):14.0f}")
    return sides


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns
    model = write_model(width=256, layers=4)  # reads 4,000 tokens in a second or two
    full = measure(model, 4096, turns)
    roomy = measure(model, 8192, turns // 2)
    print()
    verdict("cached share with cuts", share(full["workbench"]), 0.85)
    verdict("cached share without a cut", share(roomy["workbench"]), 0.95)
    for name in ("last 20 messages", "drop the oldest"):
        ratio = late_ms(full[name]) / late_ms(full["workbench"])
        verdict(f"TTFT of '{name}' / workbench", ratio, 3)


if __name__ == "__main__":
    main()
