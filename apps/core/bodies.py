"""How large a request may be: refused by its own word, before a byte of it is kept.

Django writes the whole body of a request to disk before any middleware or view sees it. This stands
before Django. A body that names no length is counted as it comes.
"""

import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# What a form says besides its files.
FORM_BYTES = 1024 * 1024
# A browser that is still sending reads the answer only when it may go on sending: what it sends is
# thrown away for so long.
DRAIN_SECONDS = 20.0


class _TooLarge(Exception):
    pass


class LimitedBodies:
    """Wraps an ASGI application: larger requests are answered with 413 and a sentence."""

    def __init__(self, application: Application, limit: int) -> None:
        """Args:
        limit: most bytes of the files in a request.
        """
        self._application = application
        self._limit = limit

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        most = self._limit + FORM_BYTES
        if _length(scope) > most:
            await self._refuse(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise _TooLarge
            return message

        try:
            await self._application(scope, counted, send)
        except _TooLarge:  # Django reads the body first: nothing has been answered yet
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        detail = (
            f"This is larger than {self._limit // 1024**2} MB, which is the most that can come at "
            "once. Split it into several files."
        )
        is_route = str(scope["path"]).startswith("/api/")
        said = {"code": "too_large", "detail": detail, "errors": []}
        body = (json.dumps(said) if is_route else detail).encode()
        kind = "application/json" if is_route else "text/plain; charset=utf-8"
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        deadline = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < deadline:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _length(scope: MutableMapping[str, Any]) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
