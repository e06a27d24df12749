"""Refusals that are repeated without asking anything."""

from typing import Any

import pytest

from apps.core.http import refusal_cache
from apps.core.http.refusal_cache import RefusalCacheMiddleware


class Site:
    """Refuses everything with a 429, in two pieces, and counts how often it refreshed."""

    def __init__(self, status: int = 429) -> None:
        self.asked: list[str] = []
        self.status = status
        self.guarded = RefusalCacheMiddleware(self._answer)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope["path"])
        headers = [(b"retry-after", b"10"), (b"Set-Cookie", b"a=b")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"too ", "more_body": True})
        await send({"type": "http.response.body", "body": b"many"})

    async def ask(self, path: str, *, key: bytes = b"Bearer a", method: str = "POST") -> Any:
        """`key`: empty is a stranger."""
        said: list[Any] = []

        async def send(message: Any) -> None:
            said.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(b"authorization", key)] if key else [],
            "client": ("10.0.0.1", 1),
        }
        await self.guarded(scope, None, send)  # type: ignore[arg-type]
        return said


async def test_a_refusal_is_repeated_and_nothing_is_asked() -> None:
    site = Site()
    await site.ask("/api/v1/conversations/1/messages")
    start, body = await site.ask("/api/v1/conversations/2/messages")
    assert site.asked == ["/api/v1/conversations/1/messages"]
    assert (start["status"], body["body"]) == (429, b"too many")
    assert dict(start["headers"]) == {b"retry-after": b"10", b"connection": b"close"}


async def test_others_and_other_requests_are_asked_for() -> None:
    site = Site()
    await site.ask("/a/1")
    await site.ask("/a/1", key=b"Bearer b")
    await site.ask("/b/1")
    await site.ask("/a/1", method="PUT")
    for _ in range(2):
        await site.ask("/a/1", method="GET")
    assert len(site.asked) == 6


async def test_strangers_do_not_answer_for_each_other() -> None:
    site = Site()
    for _ in range(2):
        await site.ask("/login/", key=b"")
    assert len(site.asked) == 2


async def test_refusal_expires_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    monkeypatch.setattr(refusal_cache, "CACHE_SECONDS", 0.0)
    for _ in range(2):
        await site.ask("/a/1")
    assert len(site.asked) == 2


async def test_what_is_let_through_is_never_remembered() -> None:
    site = Site(status=201)
    for _ in range(2):
        await site.ask("/a/1")
    assert len(site.asked) == 2


async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_cache, "MAX_ENTRIES", 3)
    site = Site()
    for letter in "abcde":
        await site.ask(f"/{letter}")
    assert len(site.guarded) == 3
