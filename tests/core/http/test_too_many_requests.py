"""The answer to a client with too many waiting requests."""

import json
from typing import Any

import pytest
from pytest_django import Settings

from apps.core.http.too_many_requests import too_many_requests


async def answer(path: str) -> tuple[dict[str, Any], bytes]:
    sent: list[Any] = []

    async def receive() -> Any: ...

    async def send(message: Any) -> None:
        sent.append(message)

    await too_many_requests({"type": "http", "path": path}, receive, send)
    start, body = sent
    return start, body["body"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api/v1/servers", b"application/json"), ("/chat/", b"text/plain; charset=utf-8")],
)
async def test_too_many_requests_is_a_sentence_with_a_time_to_wait(
    settings: Settings, path: str, kind: bytes
) -> None:
    settings.LIMITS = {**settings.LIMITS, "requests": 2}
    start, body = await answer(path)
    assert start["status"] == 429
    headers = dict(start["headers"])
    assert headers[b"content-type"] == kind
    assert headers[b"retry-after"] == b"2"
    text = body.decode()
    if path.startswith("/api/"):
        said = json.loads(text)
        assert (said["code"], said["errors"]) == ("too_many", [])
        text = said["detail"]
    assert "2 requests that wait" in text
