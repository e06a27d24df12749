"""Pages of lists, owned objects, ordered JSON and tools: the parts that every room shares."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import RequestFactory

from apps.chat.models import Conversation
from apps.core import tools
from apps.core.api import ApiError, NotFound, get_owned, page
from apps.core.context import navigation
from apps.core.fields import OrderedJSONField
from apps.core.models import ApiKey
from apps.core.tools import Approval, Tool


@pytest.fixture
def keys(alice: User) -> list[ApiKey]:
    return [ApiKey.issue(user=alice, name=f"key {number}")[0] for number in range(5)]


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_together_are_the_whole_list(keys: list[ApiKey], newest_first: bool) -> None:
    expected = [key.name for key in keys]
    seen: list[str] = []
    cursor = None
    while True:
        found = page(
            ApiKey.objects.all(),
            lambda key: key.name,
            limit=2,
            after=cursor,
            newest_first=newest_first,
        )
        seen += found["items"]
        cursor = found["next"]
        if cursor is None:
            break
    assert seen == (expected[::-1] if newest_first else expected)


@pytest.mark.parametrize(("limit", "length"), [(0, 1), (-5, 1), (3, 3), (10**9, 5)])
def test_page_limit_is_kept_in_bounds(keys: list[ApiKey], limit: int, length: int) -> None:
    assert len(page(ApiKey.objects.all(), str, limit=limit)["items"]) == length


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5"])
def test_page_refuses_what_is_no_cursor(db: None, cursor: str) -> None:
    with pytest.raises(ApiError, match="`after` must be the `next` value") as refused:
        page(ApiKey.objects.all(), str, after=cursor)
    assert (refused.value.status, refused.value.code) == (400, "bad_cursor")


def test_get_owned_finds_ones_own_alone(alice: User, bob: User) -> None:
    mine = Conversation.objects.create(owner=alice, title="mine")
    request = RequestFactory().get("/")
    request.user = alice
    assert get_owned(Conversation, request, mine.pk) == mine
    request.user = bob
    with pytest.raises(NotFound, match=r"No such .*, or you do not have access to it\."):
        get_owned(Conversation, request, mine.pk)


def test_ordered_json_keeps_order_and_odd_characters() -> None:
    field = OrderedJSONField()
    value = {"z": 1, "a": ["\0", "\ud800", "é"]}
    stored = field.get_prep_value(value)
    assert stored is not None
    assert stored.isascii()
    assert list(field.from_db_value(stored, None, connection)) == ["z", "a"]
    assert field.from_db_value(stored, None, connection) == value
    assert field.get_prep_value(None) is None
    with pytest.raises(ValueError, match="not JSON compliant"):
        field.get_prep_value(float("nan"))


@pytest.mark.parametrize(
    ("path", "here"),
    [("/servers/", "servers"), ("/no such page/", "")],
)
def test_navigation_knows_where_it_is(path: str, here: str) -> None:
    from django.urls import Resolver404, resolve

    request = RequestFactory().get(path)
    try:
        request.resolver_match = resolve(path)
    except Resolver404:
        request.resolver_match = None
    assert navigation(request)["here"] == here


def a_tool(**fields: object) -> Tool:
    given = {"name": "look_up", "title": "Look up", "description": "d", "parameters": {}}
    return Tool(**(given | {"run": "apps.core.tools.title_of"} | fields))  # type: ignore[arg-type]


def test_a_tool_asks_only_where_it_needs_approval() -> None:
    assert a_tool().default is Approval.ALWAYS
    assert a_tool(needs_approval=True).default is Approval.ASK


def test_a_tool_from_outside_has_a_fingerprint_of_what_was_approved() -> None:
    assert a_tool().fingerprint == ""
    first = a_tool(source="http://a").fingerprint
    assert len(first) == 16
    changes: list[dict[str, object]] = [
        {"source": "http://b"},
        {"source": "http://a", "description": "other"},
        {"source": "http://a", "parameters": {"type": "object"}},
    ]
    assert all(a_tool(**change).fingerprint != first for change in changes)
    assert a_tool(source="http://a", title="Other title").fingerprint == first


def test_a_tool_imports_its_function_by_path() -> None:
    assert a_tool().function() is tools.title_of
    assert tools.title_of("github__search") == "search · github"
    assert tools.title_of("unheard_of") == "unheard_of"


def test_parameters_are_all_required_unless_named() -> None:
    schema = tools.parameters(b={"type": "string"}, a={"type": "integer"})
    assert schema["required"] == ["a", "b"]
    assert schema["additionalProperties"] is False
    assert tools.parameters([], a={})["required"] == []
