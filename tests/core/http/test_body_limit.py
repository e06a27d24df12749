"""Requests that are too large, too slow or from nobody, before anything of them is kept."""

import asyncio
import errno
import inspect
import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pytest
from django.conf import settings as project
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django import Settings

from apps.core import quotas
from apps.core.http import body_limit
from apps.core.http.body_limit import ANONYMOUS_BYTES, FORM_FIELD_BYTES, BodyLimitMiddleware
from apps.core.models import ApiKey
from workbench.api import api as the_api
from workbench.openai_api import api as openai_api

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 30 * 1024 * 1024
FORM = 11 * 1024 * 1024
FILES, PAGE, ROUTE = "/datasets/new/", "/chat/new/", "/api/v1/datasets"
Headers = list[tuple[bytes, bytes]]


class Asked:
    """An application that reads the body, as Django does, and says how long it was."""

    def __init__(self, error: Exception | None = None) -> None:
        self.read = 0
        self._error = error

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            self.read += len(message["body"])
            more = message["more_body"]
            if self._error is not None:
                raise self._error
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"taken", "more_body": False})


@pytest.fixture
def key(alice: User) -> Headers:
    _, token = ApiKey.issue(user=alice, name="tests")
    return [(b"authorization", f"Bearer {token}".encode())]


@pytest.fixture
def login(browser: Client) -> Headers:
    cookie = f"a=b; {project.SESSION_COOKIE_NAME}={browser.session.session_key}"
    return [(b"cookie", cookie.encode())]


async def ask(
    asked: Asked,
    pieces: Sequence[int],
    headers: Headers,
    *,
    length: int | None = None,
    path: str = FILES,
) -> tuple[int, str, int]:
    """Status, body and how many pieces were taken from the client. The last may hang: -1."""
    sent: list[Any] = []
    taken = 0

    async def receive() -> Any:
        nonlocal taken
        if pieces[taken] < 0:
            await asyncio.Event().wait()
        taken += 1
        more = taken < len(pieces)
        return {"type": "http.request", "body": bytes(pieces[taken - 1]), "more_body": more}

    async def send(message: Any) -> None:
        sent.append(message)

    said = (b"transfer-encoding", b"chunked")
    if length is not None:
        said = (b"content-length", str(length).encode())
    scope = {"type": "http", "method": "POST", "path": path, "headers": [said, *headers]}
    await BodyLimitMiddleware(asked, LIMIT)(scope, receive, send)
    assert sent[-1]["more_body"] is False
    assert not quotas.held()
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], body.decode(), taken


@pytest.mark.parametrize("length", [LIMIT, None])
@pytest.mark.parametrize("who", ["key", "login"])
async def test_body_up_to_the_limit_is_accepted(
    length: int | None, who: str, key: Headers, login: Headers
) -> None:
    asked = Asked()
    headers = {"key": key, "login": login}[who]
    assert await ask(asked, [LIMIT], headers, length=length) == (200, "taken", 1)
    assert asked.read == LIMIT


@pytest.mark.parametrize("length", [ANONYMOUS_BYTES + 1, LIMIT, None])
@pytest.mark.parametrize("path", [FILES, ROUTE, "/health"])
@pytest.mark.parametrize("headers", [[], [(b"authorization", b"Bearer wb_x")], [(b"cookie", b"a")]])
async def test_a_stranger_sends_a_form_and_no_more(
    length: int | None, path: str, headers: Headers, db: None
) -> None:
    assert (await ask(Asked(), [ANONYMOUS_BYTES], headers, length=None, path=path))[0] == 200
    asked = Asked()
    status, said, _ = await ask(
        asked, [ANONYMOUS_BYTES, 1, 1000], headers, length=length, path=path
    )
    assert status == 401
    assert asked.read == (0 if length else ANONYMOUS_BYTES)
    assert "more than 64 KB" in said
    if path == ROUTE:
        assert json.loads(said)["code"] == "unauthorized"


async def test_a_length_over_the_limit_is_refused_before_anything_is_read(key: Headers) -> None:
    asked = Asked()
    huge = LIMIT + FORM_FIELD_BYTES + 1
    status, said, taken = await ask(asked, [1, 1, 1], key, length=huge)
    assert (status, asked.read) == (413, 0)
    assert "larger than 30 MB" in said
    assert taken == 3  # thrown away, so that a browser comes to read the answer
    status, said, _ = await ask(asked, [1], key, length=huge, path=ROUTE)
    assert status == 413
    assert json.loads(said)["code"] == "too_large"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/v1/messages", "request_too_large"), ("/v1/responses", "invalid_request_error")],
)
async def test_programs_are_refused_in_the_shape_of_their_api(
    path: str, kind: str, key: Headers
) -> None:
    status, said, _ = await ask(Asked(), [1], key, length=FORM + 1, path=path)
    assert status == 413
    assert json.loads(said)["error"]["type"] == kind


@pytest.mark.parametrize("length", [FORM + 1, None])
async def test_files_are_taken_where_files_are_wanted(length: int | None, key: Headers) -> None:
    status, said, _ = await ask(Asked(), [FORM, 1], key, length=length, path=PAGE)
    assert status == 413
    assert "larger than 11 MB" in said
    assert (await ask(Asked(), [FORM], key, length=None, path=PAGE))[0] == 200


async def test_a_body_without_a_length_is_counted(key: Headers) -> None:
    asked = Asked()
    status, said, _ = await ask(asked, [LIMIT, FORM_FIELD_BYTES, 1, 1], key)
    assert (status, asked.read) == (413, LIMIT + FORM_FIELD_BYTES)
    assert "larger than 30 MB" in said


async def test_so_many_large_ones_at_a_time(key: Headers, alice: User, settings: Settings) -> None:
    settings.LIMITS = {**project.LIMITS, "uploads": 1}
    with quotas.hold(alice.pk, "uploads"):
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-length", str(LIMIT).encode()), *key]
        scope = {"type": "http", "method": "POST", "path": ROUTE, "headers": headers}
        await BodyLimitMiddleware(Asked(), LIMIT)(scope, receive, send)
    assert sent[0]["status"] == 429
    assert (b"retry-after", b"10") in sent[0]["headers"]
    assert "You have 1 uploads" in json.loads(sent[1]["body"])["detail"]
    assert (await ask(Asked(), [LIMIT], key, path=ROUTE))[0] == 200


@pytest.mark.parametrize("pieces", [[-1], [1000, -1]])
async def test_who_sends_nothing_for_long_is_cut_off(
    pieces: list[int], key: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_limit, "MAX_PAUSE_SECONDS", 0.05)
    status, said, _ = await ask(Asked(), pieces, key, length=5000, path=ROUTE)
    assert status == 408
    assert json.loads(said)["code"] == "too_slow"


async def test_who_sends_a_little_again_and_again_is_cut_off(
    key: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_limit, "MAX_PAUSE_SECONDS", 30.0)
    clock = iter(float(second) for second in range(0, 10_000, 5))
    monkeypatch.setattr(body_limit.time, "monotonic", lambda: next(clock))
    status, _, taken = await ask(Asked(), [1] * 100, key, length=5000, path=ROUTE)
    assert status == 408
    assert taken < 20


@pytest.mark.parametrize("path", [FILES, ROUTE])
async def test_a_disk_that_is_full(path: str, key: Headers) -> None:
    full = Asked(OSError(errno.ENOSPC, "No space left on device"))
    status, said, _ = await ask(full, [1000, 1], key, path=path)
    assert status == 507
    assert "The disk of the workbench is full" in said


# --- The addresses that take files ------------------------------------------------------------


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, route)
        elif isinstance(entry, URLPattern):
            yield route, entry.callback


def test_every_address_that_takes_files_is_known() -> None:
    """Pages that read request.FILES, and routes that are documented with multipart."""
    wanted = set()
    for route, view in patterns(get_resolver()):
        view = inspect.unwrap(getattr(view, "view_class", view))
        if inspect.isfunction(view) and "request.FILES" in inspect.getsource(view):
            wanted.add(route)
    paths = [one.get_openapi_schema()["paths"].items() for one in (the_api, openai_api)]
    for path, operations in chain(*paths):
        for operation in operations.values():
            if "multipart/form-data" in operation.get("requestBody", {}).get("content", {}):
                wanted.add(path.strip("/"))
    known = {re.sub(r"<\w+:(\w+)>", r"{\1}", route) for route in project.UPLOAD_ROUTES}
    assert known == {re.sub(r"<\w+:(\w+)>", r"{\1}", route) for route in wanted}
