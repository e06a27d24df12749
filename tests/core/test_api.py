"""Owned objects, errors and pages of the API."""

import json

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import Http404, HttpRequest
from django.test import Client, RequestFactory

from apps.chat.models import Conversation
from apps.core.api import ApiError, NotFound, get_owned, page
from apps.core.errors import DomainError
from workbench.api import api as ninja_api

pytestmark = pytest.mark.django_db


def request_of(user: User) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = user
    return request


def test_get_owned_returns_the_users_object(alice: User) -> None:
    chat = Conversation.objects.create(owner=alice)
    assert get_owned(Conversation, request_of(alice), chat.pk) == chat
    rows = Conversation.objects.filter(archived=False)
    assert get_owned(rows, request_of(alice), chat.pk) == chat


@pytest.mark.parametrize("pk", [0, -1, 2**63, 2**80])
def test_get_owned_of_a_number_that_nobody_has(alice: User, pk: int) -> None:
    with pytest.raises(NotFound, match="No such conversation, or you do not have access to it"):
        get_owned(Conversation, request_of(alice), pk)


def test_get_owned_hides_the_objects_of_others_and_those_the_rows_exclude(
    alice: User, bob: User
) -> None:
    chat = Conversation.objects.create(owner=alice, archived=True)
    with pytest.raises(NotFound):
        get_owned(Conversation, request_of(bob), chat.pk)
    with pytest.raises(Http404, match="No such chat"):
        get_owned(Conversation.objects.filter(archived=False), request_of(alice), 1, name="chat")


def test_get_owned_needs_a_login() -> None:
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    with pytest.raises(AssertionError):
        get_owned(Conversation, request, 1)


class Taken(DomainError):
    """A name that someone else has."""

    status = 409
    code = "taken"
    errors = ({"loc": ["name"], "msg": "taken"},)
    retry_after = 1.2


@pytest.mark.parametrize(
    ("error", "status", "code", "errors", "retry_after"),
    [
        (DomainError("Shorten it."), 422, "invalid", [], None),
        (Taken("Shorten it."), 409, "taken", [{"loc": ["name"], "msg": "taken"}], "2"),
        (ApiError(503, "busy", "Shorten it.", retry_after=7), 503, "busy", [], "7"),
        (
            ApiError(400, "odd", "Shorten it.", errors=[{"msg": "x"}]),
            400,
            "odd",
            [{"msg": "x"}],
            None,
        ),
    ],
)
def test_domain_errors_are_answered_with_their_status(
    error: DomainError, status: int, code: str, errors: list[object], retry_after: str | None
) -> None:
    answer = ninja_api.on_exception(RequestFactory().get("/api/v1/x"), error)
    assert answer.status_code == status
    assert answer.headers.get("Retry-After") == retry_after
    assert ninja_api.renderer.media_type in answer["Content-Type"]
    wanted = {"code": code, "detail": "Shorten it.", "errors": errors}
    assert json.loads(answer.content) == wanted


def test_a_page_of_what_others_own_is_a_404_page(browser: Client, bob: User) -> None:
    theirs = Conversation.objects.create(owner=bob)
    assert browser.get(f"/chat/{theirs.pk}/").status_code == 404


def test_page_cuts_a_list_and_names_the_next(alice: User) -> None:
    pks = [Conversation.objects.create(owner=alice).pk for _ in range(3)]
    rows = Conversation.objects.owned_by(alice)
    first = page(rows, lambda row: row.pk, limit=2)
    assert first == {"items": pks[:2], "next": str(pks[1])}
    assert page(rows, lambda row: row.pk, after=first["next"]) == {"items": pks[2:], "next": None}
    assert page(rows, lambda row: row.pk, limit=1, newest_first=True)["items"] == pks[2:]


@pytest.mark.parametrize("after", ["x", "-1", "1.5", ""])
def test_page_refuses_what_is_no_cursor(alice: User, after: str) -> None:
    with pytest.raises(ApiError, match="`after` must be") as caught:
        page(Conversation.objects.owned_by(alice), str, after=after)
    assert caught.value.status == 400
