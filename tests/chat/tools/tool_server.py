"""A model server that calls what its script says, in the shape in which llama-server streams."""

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

import uvicorn
from django.utils import timezone

from apps.servers.models import DefaultServer, Server, State, Use

Delta = dict[str, Any]


def call(index: int, call_id: str, name: str, arguments: str, *, pieces: int = 3) -> list[Delta]:
    """A call as llama-server streams it: its name first, then its arguments in pieces."""
    head = {
        "index": index,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }
    size = max(1, len(arguments) // pieces)
    rest = [
        {"index": index, "function": {"arguments": arguments[at : at + size]}}
        for at in range(0, len(arguments), size)
    ]
    return [{"tool_calls": [delta]} for delta in [head, *rest]]


def say(text: str) -> list[Delta]:
    return [{"content": word} for word in text.split(" ")]


def think(text: str) -> list[Delta]:
    return [{"reasoning_content": text}]


@dataclass
class ToolServer:
    """Answers the n-th request with the n-th round of its script, the last one for ever."""

    script: list[list[Delta]]
    asked: list[dict[str, Any]] = field(default_factory=list)
    open: int = 0
    """Requests being answered now."""
    hang: bool = False
    """Never ends an answer."""
    hang_at: int = 0
    """Never ends the answer to this request, counted from one."""
    by_round: bool = False
    """Counts the rounds of the answer in hand, not the requests: some are only read ahead."""
    loads: int = 0
    """So many requests are refused first, as by a server that is loading its model."""

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        config = uvicorn.Config(
            self._app, log_level="warning", lifespan="off", ws="none", interface="asgi3"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(60)
        self._socket.close()

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    async def _app(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if not scope["path"].endswith("/chat/completions"):
            headers = [(b"content-type", b"application/json")]
            page = self.pages.get(scope["path"])
            status = 404 if page is None else 200
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(page or {}).encode()})
            return
        if self.loads:
            self.loads -= 1
            await self._refuse(send)
            return
        self.asked.append(json.loads(body))
        self.open += 1
        try:
            await self._stream(self.deltas(self.asked[-1]), send, receive)
        finally:
            self.open -= 1

    async def _refuse(self, send: Any) -> None:
        error = {"code": 503, "message": "Loading model", "type": "unavailable_error"}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        body = json.dumps({"error": error}).encode()
        await send({"type": "http.response.body", "body": body})

    def deltas(self, asked: dict[str, Any]) -> list[Delta]:
        """What the newest request is answered with."""
        number = len(self.asked) - 1
        if self.by_round:
            roles = [message["role"] for message in asked["messages"]]
            number = roles[::-1][: roles[::-1].index("user")].count("assistant")
        return self.script[min(number, len(self.script) - 1)]

    @property
    def pages(self) -> dict[str, Any]:
        """What it says of itself, by path."""
        return {"/v1/models": {"object": "list", "data": [{"id": "caller", "object": "model"}]}}

    async def before(self, number: int) -> None:
        """Waits until a piece of an answer may be sent."""

    async def _stream(self, deltas: list[Delta], send: Any, receive: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

        async def chunk(data: Any) -> None:
            line = b"data: " + json.dumps(data).encode() + b"\n\n"
            await send({"type": "http.response.body", "body": line, "more_body": True})

        called = any("tool_calls" in delta for delta in deltas)
        for number, delta in enumerate(deltas):
            await self.before(number)
            await chunk({"id": "x", "choices": [{"index": 0, "delta": delta}]})
        if self.hang or len(self.asked) == self.hang_at:
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        reason = "tool_calls" if called else "stop"
        await chunk({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        usage = {
            "prompt_tokens": 100 * len(self.asked),
            "completion_tokens": len(deltas),
            "prompt_tokens_details": {"cached_tokens": 90},
        }
        await chunk({"id": "x", "choices": [], "usage": usage})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


def create_tool_server(
    process: ToolServer, *, tools: bool | None = True, context: int = 8192
) -> Server:
    """The default chat server; its model's template knows tools, or not, or nobody says."""
    model = {"id": "caller", "state": "loaded", "slots": 2, "context": context, "unified": False}
    model["abilities"] = {} if tools is None else {"tools": tools}
    server = Server.objects.create(
        name="Caller",
        base_url=process.base_url,
        state=State.READY,
        checked_at=timezone.now(),
        next_check_at=timezone.now() + timedelta(hours=1),
        stored_facts={"models": [model], "slots": 2, "context": context},
    )
    DefaultServer.objects.create(use=Use.CHAT, server=server)
    return server
