"""Caches refusals for a second, so that a flood of the same request costs little.

Telling somebody that they have too many of something takes their login, a thread and a question to
the database. Who asks for the same fifty times a second would take these from everybody else.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from apps.runtime.threads.thread_pool_middleware import client_identity

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

CACHE_SECONDS = 1.0
MAX_ENTRIES = 1000
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_NUMBERS = re.compile(r"\d+")

Key = tuple[bytes, str, str]


@dataclass
class _Refusal:
    until: float
    headers: list[tuple[bytes, bytes]]
    body: bytearray = field(default_factory=bytearray)


class RefusalCacheMiddleware:
    """Wraps an ASGI application: a 429 to a change is repeated, for a second, to who got it.

    The same change is one at the same address but for its numbers: another conversation's question
    is a question as well.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._refused: OrderedDict[Key, _Refusal] = OrderedDict()

    def __len__(self) -> int:
        """The number of cached refusals."""
        return len(self._refused)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self._application(scope, receive, send)
            return
        who = client_identity(scope)
        client = scope.get("client")
        if client and who == client[0].encode():  # many strangers may share an address
            await self._application(scope, receive, send)
            return
        key = (who, scope["method"], _NUMBERS.sub("N", scope["path"]))
        refusal = self._refused.get(key)
        if refusal is not None and time.monotonic() < refusal.until:
            await send({"type": "http.response.start", "status": 429, "headers": refusal.headers})
            await send({"type": "http.response.body", "body": bytes(refusal.body)})
            return
        await self._application(scope, receive, self._noting(key, send))

    def _noting(self, key: Key, send: Send) -> Send:
        refusal: _Refusal | None = None

        async def noted(message: Any) -> None:
            nonlocal refusal
            if message["type"] == "http.response.start" and message["status"] == 429:
                refusal = _Refusal(0.0, _without_cookies(message["headers"]))
            elif refusal is not None and message["type"] == "http.response.body":
                refusal.body += message.get("body", b"")
                if not message.get("more_body", False):
                    refusal.until = time.monotonic() + CACHE_SECONDS
                    self._keep(key, refusal)
            await send(message)

        return noted

    def _keep(self, key: Key, refusal: _Refusal) -> None:
        self._refused[key] = refusal
        self._refused.move_to_end(key)
        while len(self._refused) > MAX_ENTRIES:
            self._refused.popitem(last=False)


def _without_cookies(headers: Any) -> list[tuple[bytes, bytes]]:
    """Nobody gets a cookie twice; what was not read of a body ends with its connection."""
    kept = [
        (bytes(name), bytes(value))
        for name, value in headers
        if bytes(name).lower() not in {b"set-cookie", b"connection"}
    ]
    return [*kept, (b"connection", b"close")]
