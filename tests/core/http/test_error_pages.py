"""What is said where no view has an answer: full disks, busy databases, numbers too large."""

import errno
import json
import sqlite3
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, OperationalError, connection, transaction
from django.test import Client
from pytest_django import Settings

from apps.chat.models import Conversation
from apps.core.http import error_pages
from apps.core.http.error_pages import refusal_for

ROUTE = "/api/v1/conversations"
HUGE = (2**63, 10**20, "9" * 5000)


def shaped(answer: Any, status: int, code: str) -> str:
    assert answer.status_code == status
    said = json.loads(answer.content)
    assert set(said) == {"code", "detail", "errors"}
    assert said["code"] == code
    return str(said["detail"])


def ask(client: Client, path: str, **data: str) -> Any:
    client.raise_request_exception = False
    return client.post(path, data or {"title": "x"}, content_type="application/json")


@pytest.mark.skipif("connection.vendor != 'sqlite'")
@pytest.mark.django_db(transaction=True)
def test_a_full_disk_on_pages_and_routes(api: Client, browser: Client) -> None:
    """As SQLite says it: no more pages may be added to the file."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")  # what earlier tests left free would be room
        cursor.execute("PRAGMA page_count")
        pages = cursor.fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages}")
    browser.raise_request_exception = False
    try:
        long = "x" * 200_000
        answer = ask(api, "/api/v1/system-prompts", name="n", text=long)
        assert "The disk of the workbench is full" in shaped(answer, 507, "disk_full")
        form = {"name": "n" * 90}
        answers = [browser.post("/settings/keys/", form) for _ in range(300)]
        (full,) = {a.content for a in answers if a.status_code == 507}
        assert b"The disk of the workbench is full" in full
        assert api.get(ROUTE).status_code == 200
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA max_page_count = 1073741823")
    assert ask(api, ROUTE).status_code == 201


@pytest.mark.skipif("connection.vendor != 'sqlite'")
@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_locked(api: Client, browser: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 0")
    holder = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    browser.raise_request_exception = False
    try:
        answer = ask(api, ROUTE)
        assert "The database is busy" in shaped(answer, 503, "busy")
        assert answer["Retry-After"] == "2"
        page = browser.post("/settings/keys/", {"name": "n"}, headers={"HX-Request": "true"})
        assert (page.status_code, page["Retry-After"]) == (503, "2")
        assert page.content.decode().startswith("The database is busy")
    finally:
        holder.rollback()
        holder.close()
        connection.close()  # and its timeout
    assert ask(api, ROUTE).status_code == 201


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("53100", 507),
        ("40P01", 503),
        ("55P03", 503),
        ("22003", 422),
        ("22P05", 422),
        ("23505", None),
    ],
)
def test_as_postgresql_says_it(state: str, status: int | None) -> None:
    psycopg = pytest.importorskip("psycopg")
    error = OperationalError("words")
    error.__cause__ = psycopg.errors.lookup(state)("words")
    reason = refusal_for(error)
    assert (reason and reason.status) == status


def test_an_sqlite_that_cannot_grow_its_files(settings: Settings, monkeypatch: Any) -> None:
    error = DatabaseError("disk I/O error")
    error.__cause__ = cause = sqlite3.OperationalError("disk I/O error")
    cause.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE  # type: ignore[attr-defined]
    assert refusal_for(error) is None  # there is room: something else
    monkeypatch.setattr(error_pages, "NEARLY_NOTHING_BYTES", 2**62)
    assert refusal_for(error) == error_pages.DISK_FULL


def test_other_errors_stay_errors() -> None:
    for error in (OSError(errno.EACCES, "x"), ValueError("x"), OverflowError("x"), KeyError("x")):
        assert refusal_for(error) is None
    assert refusal_for(OSError(errno.ENOSPC, "x")) == error_pages.DISK_FULL


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", HUGE)
def test_numbers_that_no_database_has(number: Any, browser: Client, api: Client) -> None:
    for route in (
        f"{ROUTE}/{number}",
        f"/api/v1/answers/{number}",
        f"/api/v1/datasets/{number}",
        f"/api/v1/classifiers/{number}",
        f"/api/v1/jobs/{number}",
        f"/api/v1/servers/{number}",
    ):
        answer = api.get(route)
        assert answer.status_code in {404, 422}, route
        assert set(answer.json()) == {"code", "detail", "errors"}
    for route in (ROUTE, "/api/v1/datasets"):
        assert api.get(route, {"after": number}).status_code in {200, 422}, route
    for page, query in (
        (f"/chat/{number}/", {}),
        ("/chat/older/", {"from": number, "tag": number}),
        ("/chat/attachments/", {"id": number}),
        ("/generate/new/", {"like": number}),
        ("/generate/new/", {"dataset": number}),
    ):
        assert browser.get(page, query).status_code in {200, 302, 404, 422}, (page, query)


def test_a_program_gets_json_whatever_happens(
    api: Client, browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    shaped(api.get("/api/v2/nothing"), 404, "not_found")
    shaped(Client().get("/api/nothing"), 404, "not_found")
    shaped(api.put(ROUTE), 405, "method_not_allowed")
    assert api.put(ROUTE)["Allow"]

    def breaks(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(Conversation, "of", breaks)
    api.raise_request_exception = browser.raise_request_exception = False
    shaped(api.get(f"{ROUTE}/1"), 500, "internal_error")
    page = browser.get("/chat/1/")
    assert page.status_code == 500
    assert 'name="viewport"' in page.content.decode()


def test_what_describes_the_api_takes_a_key(api: Client, browser: Client) -> None:
    for path in ("/api/v1/openapi.json", "/api/v1/docs"):
        assert api.get(path).status_code == browser.get(path).status_code == 200
        shaped(Client().get(path), 401, "unauthorized")
        wrong = Client(headers={"authorization": "Bearer wb_no"})
        shaped(wrong.get(path), 401, "unauthorized")
    person = Client(headers={"accept": "text/html"}).get("/api/v1/docs")
    assert (person.status_code, person["location"]) == (302, "/login/?next=/api/v1/docs")


@pytest.mark.django_db(transaction=True)
def test_a_text_with_nul_on_a_page(browser: Client) -> None:
    browser.raise_request_exception = False
    with transaction.atomic():
        answer = browser.post("/settings/keys/", {"name": "a\0b"})
    assert answer.status_code == (422 if connection.vendor == "postgresql" else 200)
