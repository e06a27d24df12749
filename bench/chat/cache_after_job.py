"""Whether a conversation is still in the model server's prompt cache after a job ran beside it.

A conversation of several turns, a job of 200 rows, and the conversation's next turn: how many of
its tokens come from the cache, of those it had after the turn before; beside that, the same of the
turns without a job between them. A server without a cache for what lost its slot would have to read
all of it again: on a large model that is an answer after half a minute instead of at once.

- `all slots`: nobody is active while the job runs, so it uses all slots of the server, the
  conversation's too (WORKBENCH_IDLE_AFTER_CHAT is 1 second here);
- `beside`: another conversation goes on during the job, so one slot is left free for people.

Run: `.venv/bin/python -m bench.chat.cache_after_job [--rows 200] [--turns 5]`.
"""

import argparse
import asyncio
import json
import random
import statistics
from dataclasses import dataclass
from typing import Any

import httpx2

from bench.jobs import Workbench, verdict
from bench.model import write_model
from tests.llama_process import LlamaProcess
from tests.stack import Stack

SLOTS = 4
IDLE_AFTER_CHAT = 1
ANSWER_TOKENS = 100
CACHED_BAR = 0.9
WORDS = ["kettle", "window", "garden", "letter", "mirror", "basket", "candle", "ladder"]
RECIPE: dict[str, Any] = {
    "system": "You write texts.",
    "prompt": "Write about a {{ thing }}.",
    "attributes": {"thing": WORDS},
    "schema": {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string", "minLength": 20, "maxLength": 200}},
    },
    "params": {"temperature": 0.9, "max_tokens": 250},
}


@dataclass(frozen=True)
class Turn:
    """What the server counted for an answer, in tokens."""

    prompt: int
    cached: int
    completion: int


class Conversation:
    def __init__(self, workbench: Workbench, pk: int) -> None:
        self._workbench, self._pk = workbench, pk
        self.turns: list[Turn] = []

    @classmethod
    async def begin(cls, workbench: Workbench) -> "Conversation":
        made = await workbench.client.post(f"{workbench.api}/conversations", json={})
        assert made.status_code == 201, (made.status_code, made.text)
        return cls(workbench, made.json()["id"])

    async def ask(self) -> Turn:
        """A question of about 200 tokens, and the answer to its end."""
        client, api = self._workbench.client, self._workbench.api
        body = {
            "content": " ".join(random.choices(WORDS, k=30)),
            "params": {"max_tokens": ANSWER_TOKENS},
        }
        reply = await client.post(f"{api}/conversations/{self._pk}/messages", json=body)
        assert reply.status_code == 202, reply.text
        events = f"{api}/answers/{reply.json()['answer']['id']}/events"
        event = ""
        async with client.stream("GET", events) as response:
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    event = line[7:]
                elif line.startswith("data: ") and event == "usage":
                    usage = json.loads(line[6:])
                    counts = ("prompt_tokens", "cached_tokens", "completion_tokens")
                    self.turns.append(Turn(*(usage[name] for name in counts)))
                assert event != "error", line
        return self.turns[-1]

    def shares(self) -> list[float]:
        """Of each turn but the first: cached tokens / those there were after the turn before."""
        pairs = zip(self.turns, self.turns[1:], strict=False)
        return [after.cached / (before.prompt + before.completion) for before, after in pairs]


async def measure(workbench: Workbench, *, rows: int, turns: int, beside: bool) -> None:
    conversation = await Conversation.begin(workbench)
    for _ in range(turns):
        await conversation.ask()
    had = conversation.turns[-1].prompt + conversation.turns[-1].completion
    await asyncio.sleep(IDLE_AFTER_CHAT + 1)
    job = await workbench.queue(RECIPE, rows)
    ended = asyncio.create_task(workbench.ended(job))
    others = 0
    if beside:
        other = await Conversation.begin(workbench)
        while not ended.done():
            await other.ask()
            others += 1
            await asyncio.sleep(IDLE_AFTER_CHAT / 2)
    shown = await ended
    assert shown["counts"]["accepted"] == rows, shown
    usual = statistics.median(conversation.shares())
    after = await conversation.ask()
    print(
        f"{'beside' if beside else 'all slots':10} {turns:5} {had:12} {shown['width']:5} "
        f"{others:15} {after.prompt:7} {after.cached:7} {usual:14.3f}"
    )
    verdict("cached / what the conversation had", after.cached / had, CACHED_BAR)


async def both(stack: Stack, rows: int, turns: int) -> None:
    key = stack.manage("create_api_key", "bench").split()[-1]
    async with httpx2.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {key}"}) as client:
        workbench = Workbench(client, f"{stack.url}/api/v1")
        print(
            "job on     turns  tokens then  slots  others' answers  prompt  cached  without a job"
        )
        for beside in (False, True):
            await measure(workbench, rows=rows, turns=turns, beside=beside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    random.seed(7)
    model = write_model(width=256, layers=4)
    with LlamaProcess(model, parallel=SLOTS, context_per_slot=4096) as llama:
        settings = {
            "LLM_BASE_URL": llama.base_url,
            "LLM_API_KEY": llama.api_key,
            "LLM_KV_UNIFIED": "false",
            "EMBED_BASE_URL": llama.base_url,  # not used: no second model is started
            "WORKBENCH_IDLE_AFTER_CHAT": str(IDLE_AFTER_CHAT),
        }
        with Stack(settings) as stack:
            asyncio.run(both(stack, options.rows, options.turns))


if __name__ == "__main__":
    main()
