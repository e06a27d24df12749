"""A stand-in for llama-server that writes one token every 20 ms on each connection.

Run as `python -m bench.paced_server PORT`. Its chunks look like llama-server's, byte for byte but
for the text; it has 64 slots and never keeps anybody waiting.
"""

import asyncio
import json
import sys

from uvicorn import run
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

from bench.stream import PACE_SECONDS, TOKENS

PROPS = {"total_slots": 64, "default_generation_settings": {"n_ctx": 4096}}
MODELS = {"object": "list", "data": [{"id": "paced", "owned_by": "llamacpp"}]}


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


async def answer(send: ASGISendCallable) -> None:
    async def write(data: bytes, more: bool = True) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": more})

    progress = {"total": 20, "cache": 0, "processed": 0, "time_ms": 0}
    await write(chunk(**choice({"role": "assistant", "content": None}), prompt_progress=progress))
    due = asyncio.get_running_loop().time()
    for _ in range(TOKENS):
        due += PACE_SECONDS
        await asyncio.sleep(due - asyncio.get_running_loop().time())
        await write(chunk(**choice({"content": " word"})))
    await write(chunk(**choice({}, "stop")))
    usage = {"prompt_tokens": 20, "completion_tokens": TOKENS, "total_tokens": 20 + TOKENS}
    await write(chunk(usage=usage, timings={"predicted_per_second": 1 / PACE_SECONDS}))
    await write(b"data: [DONE]\n\n", more=False)


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
        while (await receive()).get("more_body"):
            pass
        await answer(send)
        return
    body = {"/props": PROPS, "/v1/models": MODELS}.get(path, {"status": "ok"})
    await send(
        {"type": "http.response.body", "body": json.dumps(body).encode(), "more_body": False}
    )


if __name__ == "__main__":
    run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
