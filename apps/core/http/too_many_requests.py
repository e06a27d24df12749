"""The answer to a client with too many requests that wait for a thread."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from apps.core.http.error_pages import API
from apps.core.quotas import LimitReached, most


async def too_many_requests(
    scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Answer with 429, as an ASGI application."""
    error = LimitReached("requests", most("requests"))
    is_api_path = scope["path"].startswith(API)
    said = {"code": "too_many", "detail": str(error), "errors": []}
    headers = [
        (b"content-type", b"application/json" if is_api_path else b"text/plain; charset=utf-8"),
        (b"retry-after", str(error.retry_after).encode()),
        (b"connection", b"close"),
    ]
    body = json.dumps(said) if is_api_path else str(error)
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})
