from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.test import AsyncClient, Client


@pytest.mark.django_db(transaction=True)
async def test_all_middleware_runs_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django hands a request to a thread once, not for each middleware by itself."""
    handed_over: list[str] = []
    run = SyncToAsync.__call__

    async def counted(self: SyncToAsync[..., Any], *args: Any, **kwargs: Any) -> Any:
        handed_over.append(getattr(self.func, "__qualname__", ""))
        return await run(self, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "__call__", counted)
    assert (await AsyncClient().get("/health")).status_code == 200
    assert not [name for name in handed_over if name.endswith("process_request")]
    assert not [name for name in handed_over if name.endswith("process_response")]


@pytest.mark.django_db(transaction=True)
async def test_static_files_are_served() -> None:
    answer = await AsyncClient().get("/static/css/workbench.css")
    assert answer.status_code == 200
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_pages_keep_their_headers(browser: Client) -> None:
    answer = browser.get("/settings/")
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
