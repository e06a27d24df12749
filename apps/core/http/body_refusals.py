"""Refusals of request bodies, sent before Django sees the request."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from apps.core.http.error_pages import Refusal, is_api_path, refusal_json

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def too_large(most: int, remedy: str) -> Refusal:
    """Refuse a body larger than `most` bytes."""
    size = f"{most // 1024**2} MB" if most >= 1024**2 else f"{most // 1024} KB"
    detail = f"This is larger than {size}, which is the most that can come at once. {remedy}"
    return Refusal(413, "too_large", detail)


def login_required(most: int) -> Refusal:
    """Refuse more than `most` bytes of someone who is not logged in."""
    return Refusal(
        401,
        "unauthorized",
        f"Log in, or send a valid key as `Authorization: Bearer wb_...`: more than {most // 1024} "
        "KB are taken from people who are known here.",
    )


def too_slow(pause: float, bytes_per_second: int) -> Refusal:
    """Refuse a body that arrives too slowly."""
    pace = bytes_per_second // 1024
    return Refusal(
        408,
        "too_slow",
        f"The request did not arrive: after {pause:.0f} seconds it must come with "
        f"{pace} KB a second. Try again with a better connection.",
    )


async def send_refusal(
    refusal: Refusal, path: str, send: Send, drain: Callable[[], Awaitable[None]]
) -> None:
    """Send a refusal: JSON to a program, a line of text to a person.

    Args:
        drain: reads the rest of the request, because a browser reads the answer only afterwards.
    """
    is_api = is_api_path(path)
    text = (json.dumps(refusal_json(path, refusal)) if is_api else refusal.detail).encode()
    kind = "application/json" if is_api else "text/plain; charset=utf-8"
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(text)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": text, "more_body": True})
    if refusal.status != 408:
        await drain()
    await send({"type": "http.response.body", "body": b"", "more_body": False})
