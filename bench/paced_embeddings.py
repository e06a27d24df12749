"""A stand-in for llama-server on a GPU that embeds: what a pass costs does not depend on its texts.

Run as `python -m bench.paced_embeddings PORT SLOTS`. As llama-server does, it makes every text of
every request a task, first come first served, and takes up to SLOTS of them into one pass. A pass
takes 8 ms, whatever it holds: on a GPU a small model's pass is mostly the launching of it.
Vectors are drawn by the text's hash, 384 numbers of unit length, and sent as base64 where asked.
"""

import asyncio
import base64
import hashlib
import json
import sys
from collections import deque
from typing import Any

import numpy as np
from uvicorn import run
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

from bench.paced_server import body_of

PASS_SECONDS = 0.008
DIMENSIONS = 384
MODEL = "paced-embeddings"


class Passes:
    """Tasks wait in one line; a pass takes as many as there are slots."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._running: asyncio.Task[None] | None = None

    async def take_part(self, texts: int) -> None:
        """Returns when the last of so many texts has been in a pass."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_future() for _ in range(texts)]
        self._waiting.extend(tasks)
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._run())
        await asyncio.gather(*tasks)

    async def _run(self) -> None:
        due = asyncio.get_running_loop().time()
        while self._waiting:
            part = [self._waiting.popleft() for _ in range(min(self._slots, len(self._waiting)))]
            due += PASS_SECONDS
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            for task in part:
                if not task.done():
                    task.set_result(None)


def vector(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    drawn = np.random.default_rng(seed).normal(size=DIMENSIONS).astype("<f4")
    unit: np.ndarray = drawn / np.linalg.norm(drawn)
    return unit


def shown(numbers: np.ndarray, form: str) -> Any:
    return base64.b64encode(numbers.tobytes()).decode() if form == "base64" else numbers.tolist()


async def embedded(passes: Passes, body: dict[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    await passes.take_part(len(texts))
    form = body.get("encoding_format", "float")
    return {
        "object": "list",
        "model": MODEL,
        "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)},
        "data": [
            {"object": "embedding", "index": index, "embedding": shown(vector(text), form)}
            for index, text in enumerate(texts)
        ],
    }


def application(slots: int) -> Any:
    passes = Passes(slots)
    known = {
        "/props": {"total_slots": slots, "default_generation_settings": {"n_ctx": 512}},
        "/v1/models": {"object": "list", "data": [{"id": MODEL, "owned_by": "llamacpp"}]},
        "/health": {"status": "ok"},
    }

    async def app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        assert scope["type"] == "http"
        answer = known.get(scope["path"])
        if scope["path"].endswith("/embeddings"):
            answer = await embedded(passes, json.loads(await body_of(receive)))
        await send(
            {
                "type": "http.response.start",
                "status": 404 if answer is None else 200,
                "headers": [(b"content-type", b"application/json")],
                "trailers": False,
            }
        )
        await send(
            {
                "type": "http.response.body",
                "body": json.dumps(answer or {"error": {"message": "not here"}}).encode(),
                "more_body": False,
            }
        )

    return app


if __name__ == "__main__":
    run(
        application(int(sys.argv[2])),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
    )
