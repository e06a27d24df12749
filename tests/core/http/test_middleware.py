from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from asgiref.testing import ApplicationCommunicator
from django.test import AsyncClient, Client

from apps.runtime.handler import Handler

SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "GET",
    "path": "/health",
    "query_string": b"",
    "headers": [(b"host", b"localhost")],
}


@pytest.mark.django_db(transaction=True)
async def test_a_request_goes_to_a_thread_once(monkeypatch: pytest.MonkeyPatch) -> None:
    handed_over: list[str] = []
    run = SyncToAsync.__call__

    async def counted(self: SyncToAsync[..., Any], *args: Any, **kwargs: Any) -> Any:
        handed_over.append(getattr(self.func, "__qualname__", ""))
        return await run(self, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "__call__", counted)
    server = ApplicationCommunicator(Handler(), SCOPE)
    await server.send_input({"type": "http.request", "body": b""})
    start = await server.receive_output(60)
    await server.receive_output(60)
    await server.wait(60)
    assert start["status"] == 200
    assert handed_over.count("BaseHandler.get_response") == 1
    assert not [name for name in handed_over if "iddleware" in name or name.endswith("inner")]


@pytest.mark.django_db(transaction=True)
async def test_static_files_are_served() -> None:
    answer = await AsyncClient().get("/static/core/tokens.css")
    assert answer.status_code == 200
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_pages_keep_their_headers(browser: Client) -> None:
    answer = browser.get("/settings/")
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert "no-store" in answer["Cache-Control"]
    assert browser.get("/datasets/")["Cache-Control"] == "no-store"
    assert "camera=()" in answer["Permissions-Policy"]
