"""A stand-in for llama-server that writes at a given pace on every connection.

Run as `python -m bench.paced_server PORT`. It has two models: `paced` writes a token every 20 ms,
`unpaced` as fast as they are taken. Its chunks look like llama-server's, byte for byte but for the
text; it has 64 slots and never keeps anybody waiting.
"""

import asyncio
import json
import sys
from typing import Any

from uvicorn import run
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

PACE_SECONDS = 0.02
PACE = {"paced": PACE_SECONDS, "unpaced": 0.0}
PROPS = {"total_slots": 64, "default_generation_settings": {"n_ctx": 4096}}
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


async def answer(question: dict[str, Any], send: ASGISendCallable) -> None:
    async def write(data: bytes, more: bool = True) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": more})

    tokens = int(question.get("max_tokens") or 100)
    pace = PACE.get(question.get("model", ""), PACE_SECONDS)
    await write(FIRST)
    loop = asyncio.get_running_loop()
    due = loop.time()
    for number in range(tokens):
        if pace:
            due += pace
            await asyncio.sleep(due - loop.time())
        # Numbered, so that a test can see whether one is missing.
        await write(chunk(**choice({"content": f" {number}"})) if pace else WORD)
    await write(LAST)
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


async def app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    assert scope["type"] == "http"
    path = scope["path"]
    streams = path.endswith("/chat/completions")
    kind = b"text/event-stream" if streams else b"application/json"
    await send(
        {
            "type": "http.response.start",
            "status": 200 if streams or path in {"/health", "/props", "/v1/models"} else 404,
            "headers": [(b"content-type", kind)],
            "trailers": False,
        }
    )
    if streams:
        await answer(json.loads(await body_of(receive)), send)
        return
    body = {"/props": PROPS, "/v1/models": MODELS}.get(path, {"status": "ok"})
    await send(
        {"type": "http.response.body", "body": json.dumps(body).encode(), "more_body": False}
    )


if __name__ == "__main__":
    run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
