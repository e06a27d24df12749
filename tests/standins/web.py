"""Just enough of a web server for a stand-in: requests, replies, and forwarding them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import httpx2

from tests.standins.state import Config, Memory, Model

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Transform = Callable[[bytes], bytes]

# llama-server closes a connection after five. The real proxies ask again where they meet that.
IDLE_SECONDS = 4.0


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    raw_query: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> tuple[bytes, str]:
        if isinstance(self.body, str):
            return self.body.encode(), "text/plain; charset=utf-8"
        return json.dumps(self.body).encode(), "application/json"


@dataclass
class Forward:
    """Pass a request on, to a path of llama.cpp, and its answer back as it comes."""

    path: str
    model: Model | None = None
    headers: dict[str, str] = field(default_factory=dict)
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Of a JSON answer."""
    line: Transform | None = None
    """Of each line of a stream."""
    error: Callable[[int, dict[str, Any]], Any] | None = None
    """Of an error's body."""


@dataclass
class Told:
    """Server-sent events, for as long as somebody listens."""

    pieces: AsyncIterator[bytes]


class Gone(Exception):
    """llama.cpp did not answer: the reason in words."""


class App:
    """What all stand-ins share. A kind overrides `answer`."""

    at_once = 1

    def __init__(self, config: Config) -> None:
        self.config = config
        self.asked: list[dict[str, Any]] = []
        self._memory: Memory | None = None
        self._client: httpx2.AsyncClient | None = None

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            self._memory = Memory(self.config, self.at_once)
        return self._memory

    async def answer(self, request: Request) -> Reply | Forward | Told:
        raise NotImplementedError

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = await _read(scope, receive)
        if request.path.startswith("/_standin"):
            await _send(send, self._control(request))
            return
        noted = {
            "method": request.method,
            "path": request.path,
            "query": request.raw_query,
            "model": request.json.get("model") or request.query.get("model", ""),
            "status": 0,
            "fields": sorted(request.json),
            "session": request.headers.get("x-olla-session-id", ""),
        }
        self.asked.append(noted)
        work = asyncio.create_task(self._respond(request, send, noted))
        gone = asyncio.create_task(_disconnected(receive))
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in (work, gone):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _respond(self, request: Request, send: Send, noted: dict[str, Any]) -> None:
        answer = await self.answer(request)
        if isinstance(answer, Reply):
            noted["status"] = answer.status
            await _send(send, answer)
            return
        if isinstance(answer, Told):
            noted["status"] = 200
            await _start(send, 200, {"content-type": "text/event-stream"})
            async for piece in answer.pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
            return
        model = answer.model
        if model is not None:
            self.memory.begin(model)
        try:
            await self._forward(request, answer, send, noted)
        except Gone as error:
            failed = self.gone(str(error))
            noted["status"] = failed.status
            await _send(send, failed)
        finally:
            if model is not None:
                await asyncio.shield(self.memory.end(model))

    def gone(self, reason: str) -> Reply:
        """The answer while llama.cpp does not give one."""
        return Reply(502, reason)

    async def _forward(
        self, request: Request, how: Forward, send: Send, noted: dict[str, Any]
    ) -> None:
        async with self._opened(request, how) as response:
            noted["status"] = response.status_code
            headers = how.headers | {"content-type": response.headers.get("content-type", "")}
            is_json = headers["content-type"].startswith("application/json")
            if is_json and (how.change or (how.error and response.status_code >= 400)):
                body = json.loads(await response.aread())
                if response.status_code >= 400 and how.error:
                    body = how.error(response.status_code, body)
                elif how.change:
                    body = how.change(body)
                await _send(send, Reply(response.status_code, body, how.headers))
                return
            await _start(send, response.status_code, headers)
            async for chunk in _pieces(response, how.line):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    def _opened(self, request: Request, how: Forward) -> "_Opened":
        if self._client is None:
            limits = httpx2.Limits(keepalive_expiry=IDLE_SECONDS)
            self._client = httpx2.AsyncClient(timeout=None, limits=limits)
        embeds = how.model is not None and how.model.embeddings and self.config.embeddings_upstream
        root = self.config.embeddings_upstream if embeds else self.config.upstream
        key = self.config.embeddings_key if embeds else self.config.upstream_key
        outgoing = self._client.build_request(
            request.method,
            root + how.path,
            content=request.body or None,
            headers={"content-type": "application/json", "authorization": f"Bearer {key}"},
        )
        return _Opened(self._client, outgoing, self.config.header_seconds)

    def _control(self, request: Request) -> Reply:
        if request.method == "POST":
            self.config = Config.of(request.json)
            self.memory.change(self.config)
        return Reply(200, {"asked": self.asked, **self.memory.report()})


class _Opened:
    """A response whose headers have come, closed at the end of the block."""

    def __init__(self, client: httpx2.AsyncClient, request: httpx2.Request, patience: float):
        self.client, self.request, self.patience = client, request, patience

    async def __aenter__(self) -> httpx2.Response:
        try:
            async with asyncio.timeout(self.patience):
                self.response = await self.client.send(self.request, stream=True)
        except TimeoutError as error:
            raise Gone("timeout awaiting response headers") from error
        except httpx2.TransportError as error:
            raise Gone("connect: connection refused") from error
        return self.response

    async def __aexit__(self, *_: object) -> None:
        await self.response.aclose()


async def _pieces(response: httpx2.Response, line: Transform | None) -> AsyncIterator[bytes]:
    if line is None:
        async for chunk in response.aiter_raw():
            yield chunk
        return
    rest = b""
    async for chunk in response.aiter_raw():
        *lines, rest = (rest + chunk).split(b"\n")
        for one in lines:
            yield line(one) + b"\n"
    yield rest


async def _read(scope: dict[str, Any], receive: Receive) -> Request:
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    raw_query = scope["query_string"].decode()
    return Request(
        scope["method"],
        scope["path"],
        dict(parse_qsl(raw_query)),
        raw_query,
        {name.decode(): value.decode() for name, value in scope["headers"]},
        body,
    )


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _start(send: Send, status: int, headers: dict[str, str]) -> None:
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def _send(send: Send, reply: Reply) -> None:
    body, kind = reply.encoded()
    await _start(
        send,
        reply.status,
        {"content-type": kind, "content-length": str(len(body)), **reply.headers},
    )
    await send({"type": "http.response.body", "body": body})


def sized(model: Model) -> Callable[[Any], Any]:
    """Makes the /props or /slots of the llama.cpp behind it those of this model."""

    def change(body: Any) -> Any:
        if isinstance(body, list):
            return [{**slot, "n_ctx": model.context} for slot in body[: model.slots]]
        if "total_slots" in body:
            settings = {**body.get("default_generation_settings", {}), "n_ctx": model.context}
            return {
                **body,
                "total_slots": model.slots,
                "model_alias": model.id,
                "default_generation_settings": settings,
            }
        return body

    return change
