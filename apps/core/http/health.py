"""`/health`: answered in front of everything else, so also while all threads are taken."""

from collections.abc import MutableMapping
from typing import Any

from apps.core.http.body_limit import Application, Receive, Send

ALIVE = b'{"status": "ok"}'
HEADERS = [
    (b"content-type", b"application/json"),
    (b"content-length", str(len(ALIVE)).encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


class Health:
    """Wraps an ASGI application. Says that this process answers, and nothing else to strangers."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        is_asked = scope["type"] == "http" and scope["path"] == "/health"
        if not is_asked or scope["method"] not in {"GET", "HEAD"}:
            await self._application(scope, receive, send)
            return
        body = b"" if scope["method"] == "HEAD" else ALIVE
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": body})
