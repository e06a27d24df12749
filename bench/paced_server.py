"""A stand-in for llama-server that writes at a given pace on every connection.

Run as `python -m bench.paced_server PORT [CONTEXT]`. Its models: `paced` writes a token every 20
ms, `unpaced` as fast as they are taken; `quick` (10 ms) and `rapid` (2 ms) begin a paragraph every
PARAGRAPH tokens, and when each of their tokens was sent is told at `/sent`. Its chunks look like
llama-server's, byte for byte but for the text; it has 64 slots and never keeps anybody waiting.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Coroutine
from typing import Any

from uvicorn import run
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

PACE_SECONDS = 0.02
PACE = {"paced": PACE_SECONDS, "unpaced": 0.0, "quick": 0.01, "rapid": 0.002, "typeset": 0.01}
TIMED = {"quick", "rapid"}
PARAGRAPH = 60
TYPESET = r"""# Why it is slow

Your loop sends **eight requests at once** to a server with *four* slots. See `n_parallel`.

## Keep the shared part first

1. Put the question **before** the passage
2. Then send, see [the notes](https://example.org/notes):
   - one slot per request
   - `cache_prompt` on

```python
slots = asyncio.Semaphore(4)  # as many as the server has


async def score_one(prefix, passage):
    async with slots:
        return await score(prefix + passage)
```

| Order | Cached | 8 passages |
|-------|-------:|-----------:|
| Passage, then question | 3% | 6.8 s |
| Question, then passage | **54%** | 3.1 s |

The time of one request is then

$$
t = \frac{n_{prompt} - n_{cached}}{r_{read}} + \frac{n_{answer}}{r_{write}}
$$

and only the first term shrinks, since \(r_{read}\) is a property of the card.

> With 1,900 tokens less to read, a **second** is saved.

- [x] measured
- [ ] shipped

```sh
llama-server -m model.gguf -np 8
```

That is all; it costs $5 and no more.
"""
CONTEXT = int(sys.argv[2]) if len(sys.argv) > 2 else 4096
PROPS = {"total_slots": 64, "default_generation_settings": {"n_ctx": CONTEXT}}
MODELS = {"object": "list", "data": [{"id": name, "owned_by": "llamacpp"} for name in PACE]}


def chunk(**fields: object) -> bytes:
    body = {
        "choices": [],
        "created": 1_790_000_000,
        "id": "chatcmpl-0123456789abcdefghijklmnopqrstuv",
        "model": "paced",
        "system_fingerprint": "b11549-0000000",
        "object": "chat.completion.chunk",
    } | fields
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def choice(delta: dict[str, str | None], finish_reason: str | None = None) -> dict[str, object]:
    return {"choices": [{"finish_reason": finish_reason, "index": 0, "delta": delta}]}


PROGRESS = {"total": 20, "cache": 0, "processed": 0, "time_ms": 0}
FIRST = chunk(**choice({"role": "assistant", "content": None}), prompt_progress=PROGRESS)
WORD = chunk(**choice({"content": " word"}))
LAST = chunk(**choice({}, "stop"))
END = b"data: [DONE]\n\n"


sent: list[float] = []
"""When the tokens of the newest answer of a timed model were sent, in seconds since 1970."""


async def answer(question: dict[str, Any], send: ASGISendCallable) -> None:
    async def write(data: bytes, more: bool = True) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": more})

    tokens = int(question.get("max_tokens") or 100)
    model = question.get("model", "")
    pace = PACE.get(model, PACE_SECONDS)
    if model in TIMED:
        sent.clear()
    await write(FIRST)
    loop = asyncio.get_running_loop()
    due = loop.time()
    pieces = re.findall(r"\s*\S{1,6}", TYPESET) if model == "typeset" else [None] * tokens
    for number, piece in enumerate(pieces):
        if pace:
            due += pace
            await asyncio.sleep(due - loop.time())
        # Numbered, so that a test can see whether one is missing.
        text = piece if piece is not None else f" {number}"
        if model in TIMED:
            sent.append(time.time())
            text = f"\n\n{number}" if number and number % PARAGRAPH == 0 else text
        await write(chunk(**choice({"content": text})) if pace else WORD)
    await write(LAST)
    tokens = len(pieces)
    usage = {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens}
    await write(chunk(usage=usage, timings={"predicted_per_second": 1 / PACE_SECONDS}))
    await write(END, more=False)


async def body_of(receive: ASGIReceiveCallable) -> bytes:
    body = b""
    while True:
        message = await receive()
        assert message["type"] == "http.request"
        body += message["body"]
        if not message["more_body"]:
            return body


async def until_it_leaves(receive: ASGIReceiveCallable, writing: Coroutine[Any, Any, None]) -> None:
    """As llama-server: who closes the connection ends the answer."""
    task = asyncio.create_task(writing)
    leaving = asyncio.ensure_future(receive())
    await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
    leaving.cancel()
    if not task.cancel():
        task.result()


async def app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    assert scope["type"] == "http"
    path = scope["path"]
    streams = path.endswith("/chat/completions")
    kind = b"text/event-stream" if streams else b"application/json"
    await send(
        {
            "type": "http.response.start",
            "status": 200
            if streams or path in {"/health", "/props", "/v1/models", "/sent"}
            else 404,
            "headers": [(b"content-type", kind)],
            "trailers": False,
        }
    )
    if streams:
        await until_it_leaves(receive, answer(json.loads(await body_of(receive)), send))
        return
    pages: dict[str, object] = {"/props": PROPS, "/v1/models": MODELS, "/sent": sent}
    body = pages.get(path, {"status": "ok"})
    await send(
        {"type": "http.response.body", "body": json.dumps(body).encode(), "more_body": False}
    )


if __name__ == "__main__":
    run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
