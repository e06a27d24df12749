"""Views that wait hold no thread; what went wrong is said in the shape that was promised."""

import asyncio
import json
import threading
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.test import AsyncClient
from django.urls import include, path
from django.views.decorators.http import require_safe
from pytest_django import Settings

from apps.core.http.health import Health
from apps.runtime.handler import Handler
from apps.runtime.threads.thread_pool import RequestThreadPool
from apps.runtime.threads.thread_pool_middleware import ThreadPoolMiddleware

UNTIL: asyncio.Event


@login_not_required
@require_safe
async def waits(request: HttpRequest) -> HttpResponse:
    await UNTIL.wait()
    return HttpResponse("waited")


@login_not_required
async def fails(request: HttpRequest) -> HttpResponse:
    raise {"404": Http404, "403": PermissionDenied, "500": ZeroDivisionError}[request.GET["as"]]


@login_not_required
@require_safe
def plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse(threading.current_thread().name)


async def whoever(request: HttpRequest) -> HttpResponse:
    request.session["seen"] = "yes"
    return HttpResponse(str(request.user.pk))


urlpatterns = [
    path("waits", waits),
    path("fails", fails),
    path("api/fails", fails),
    path("plain", plain),
    path("whoever", whoever),
    path("", include("apps.core.urls")),
]
handler404 = "apps.core.http.error_pages.page_not_found"
handler403 = "apps.core.http.error_pages.permission_denied"
handler500 = "apps.core.http.error_pages.server_error"


@pytest.fixture(autouse=True)
def _addresses(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__


async def ask(application: Any, address: str) -> tuple[int, bytes]:
    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    server = ApplicationCommunicator(application, scope)
    await server.send_input({"type": "http.request", "body": b""})
    start = await server.receive_output(60)
    body = await server.receive_output(60)
    await server.wait(60)
    return start["status"], body["body"]


@pytest.mark.django_db(transaction=True)
async def test_more_views_wait_than_there_are_threads() -> None:
    global UNTIL
    UNTIL = asyncio.Event()
    pool = RequestThreadPool(min_threads=1, max_threads=2)
    served = Health(ThreadPoolMiddleware(Handler(), pool))
    waiting = [asyncio.create_task(ask(served, "/waits")) for _ in range(20)]
    assert (await ask(served, "/plain"))[0] == 200
    assert pool.size <= 2
    assert not any(task.done() for task in waiting)
    UNTIL.set()
    assert await asyncio.gather(*waiting) == [(200, b"waited")] * 20


@pytest.mark.django_db(transaction=True)
async def test_health_is_answered_while_every_thread_is_held() -> None:
    pool = RequestThreadPool(min_threads=1, max_threads=1)
    until = threading.Event()
    served = Health(ThreadPoolMiddleware(Handler(), pool))
    pool.run(_Held(until), lambda: None)  # type: ignore[arg-type]
    try:
        assert await ask(served, "/health") == (200, b'{"status": "ok"}')
    finally:
        until.set()


class _Held:
    def __init__(self, until: threading.Event) -> None:
        self.run = until.wait


@pytest.mark.django_db(transaction=True)
async def test_middleware_comes_before_and_after_a_coroutine(alice: User) -> None:
    stranger = AsyncClient()
    sent_away = await stranger.get("/whoever")
    assert sent_away.status_code == 302
    client = AsyncClient()
    await client.aforce_login(alice)
    answer = await client.get("/whoever")
    assert answer.content == str(alice.pk).encode()
    assert answer["X-Frame-Options"] == "DENY"
    assert "Content-Security-Policy" in answer
    assert await (await client.asession()).aget("seen") == "yes"
    assert (await AsyncClient().post("/waits")).status_code == 405


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", [403, 404, 500])
async def test_a_coroutine_that_fails(code: int) -> None:
    client = AsyncClient(raise_request_exception=False)
    page = await client.get(f"/fails?as={code}")
    assert page.status_code == code
    assert page["Content-Type"].startswith("text/html")
    route = await client.get(f"/api/fails?as={code}")
    assert route.status_code == code
    assert set(json.loads(route.content)) == {"code", "detail", "errors"}
