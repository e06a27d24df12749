"""Tool servers of one's own: seen, used and changed by nobody else, and no way into our network."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.test import Client, RequestFactory

from apps.chat.conversations import sharing
from apps.chat.prompt import build
from apps.core import crypto, tools
from apps.core.tools import ToolError
from apps.mcp import connection as mcp_connection
from apps.mcp import discovery, sessions, views
from apps.mcp import tools as mcp_tools
from apps.mcp.forms import MAX_OWN
from apps.mcp.models import Target, ToolServer, Transport
from apps.runtime.async_db import in_db
from tests.chat.conftest import told
from tests.conftest import NOBODY
from tests.mcp.conftest import KEY, create_command
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

POUR = {
    "name": "kettle__pour", "tool": "pour", "title": "Pour", "description": "",
    "parameters": {"type": "object"},
}  # fmt: skip


LIMIT = f"You have reached the limit of {MAX_OWN} tool servers. Remove one first."


@pytest.fixture
def _private_allowed(settings: object) -> None:
    settings.MCP_OWN_PRIVATE_URLS = True  # type: ignore[attr-defined]


def given(url: str, **changes: str) -> dict[str, str]:
    return {"name": "Kettle", "url": url, "api_key": "", "headers": "", "enabled": "on"} | changes


def create_own(owner: User, name: str = "Kettle", **fields: object) -> ToolServer:
    fields = {"slug": "kettle", "url": "http://127.0.0.1:9/mcp", "tools": [POUR]} | fields
    return ToolServer.objects.create(owner=owner, name=name, **fields)


def names(person: int) -> set[str]:
    return {tool.name for tool in tools.available(person) if tool.group}


@pytest.mark.usefixtures("_private_allowed")
def test_personal_tool_server_is_offered_to_its_owner_alone(
    alice: User, bob: User, browser: Client, bobs_browser: Client, staff: Client, http_kettle: str
) -> None:
    form = given(http_kettle, headers=f"Authorization: Bearer {KEY}\nX-Tenant:tea")
    page = browser.post("/tools/add-own/", form, follow=True).content.decode()
    assert "Kettle added: 7 tools." in page
    assert http_kettle in page
    assert KEY not in page
    server = ToolServer.objects.get()
    assert KEY not in server.encrypted_headers
    assert server.headers == {"Authorization": f"Bearer {KEY}", "X-Tenant": "tea"}
    assert "kettle__pour" in names(alice.pk)
    assert not names(bob.pk) | names(NOBODY)
    (pour,) = [tool for tool in tools.available(alice.pk) if tool.name == "kettle__pour"]
    assert pour.group == "Kettle (yours)"

    edit = f"/tools/{server.pk}/"
    assert KEY not in browser.get(edit).content.decode()
    for other in (bobs_browser, staff):  # staff neither
        assert "Kettle" not in other.get("/tools/").content.decode()
        assert other.get(edit).status_code == 404
        for path in ("", "look/", "remove/"):
            assert other.post(f"{edit}{path}", form).status_code == 404
    saved = browser.post(edit, given(http_kettle, name="Far kettle"), follow=True)
    assert "Far kettle saved: 7 tools." in saved.content.decode()
    forgotten = browser.post(edit, given(http_kettle, forget="on"), follow=True)
    assert (
        "The API key is missing or was rejected (401). Update it under Edit."
        in forgotten.content.decode()
    )
    assert browser.post(f"{edit}remove/").status_code == 302
    assert not ToolServer.objects.exists()


def test_its_address_is_in_the_internet(browser: Client, http_kettle: str) -> None:
    for address in (http_kettle, "http://localhost:9/mcp", "http://[::1]:9/mcp"):
        refused = browser.post("/tools/add-own/", given(address))
        assert refused.status_code == 422
        assert "Personal tool servers cannot use private addresses." in refused.content.decode()
    assert not ToolServer.objects.exists()
    assert "It must be a public address." in browser.get("/tools/").content.decode()


def test_personal_tool_server_cannot_be_a_command(alice: User, browser: Client) -> None:
    tried = given("", transport="stdio", command="id", environment="A=1")
    refused = browser.post("/tools/add-own/", tried)
    assert (refused.status_code, ToolServer.objects.count()) == (422, 0)
    assert 'id="own_url_error"' in refused.content.decode()
    assert "own_command" not in refused.content.decode()
    server = create_own(alice)
    browser.post(f"/tools/{server.pk}/", given("http://127.0.0.1:9/mcp", transport="stdio"))
    assert ToolServer.objects.get().transport == Transport.HTTP
    with pytest.raises(IntegrityError), transaction.atomic():
        create_own(alice, "Another", slug="another", transport=Transport.STDIO, command="id")


@pytest.mark.usefixtures("_private_allowed")
def test_personal_and_shared_names_may_be_equal(
    alice: User, bob: User, browser: Client, bobs_browser: Client, staff: Client
) -> None:
    create_command(tools=[POUR])
    form = given("http://127.0.0.1:9/mcp")
    browser.post("/tools/add-own/", form)
    bobs_browser.post("/tools/add-own/", form)  # sees nothing of alice's
    own = ToolServer.objects.exclude(owner=None)
    assert set(own.values_list("owner", "name", "slug")) == {
        (alice.pk, "Kettle", "kettle2"), (bob.pk, "Kettle", "kettle2"),
    }  # fmt: skip
    twice = browser.post("/tools/add-own/", form)
    assert twice.status_code == 422
    assert "A tool server with this name already exists." in twice.content.decode()
    staff.post("/tools/add/", form | {"transport": "http", "name": "kettle2"})
    shared = ToolServer.objects.get(name="kettle2")
    assert shared.slug not in {"kettle", "kettle2"}  # of nobody's


@pytest.mark.usefixtures("_private_allowed")
def test_own_servers_are_limited_in_number(
    alice: User, browser: Client, bobs_browser: Client
) -> None:
    for number in range(MAX_OWN):
        create_own(alice, str(number), slug=str(number))
    refused = browser.post("/tools/add-own/", given("http://127.0.0.1:9/mcp"))
    assert refused.status_code == 422
    assert LIMIT in refused.content.decode()
    assert LIMIT in browser.get("/tools/").content.decode()
    assert bobs_browser.post("/tools/add-own/", given("http://127.0.0.1:9/")).status_code == 302
    changed = browser.post(f"/tools/{ToolServer.objects.first().pk}/", given("http://127.0.0.1:9/"))  # type: ignore[union-attr]
    assert changed.status_code == 302


def test_a_conversation_takes_none_of_anothers(
    alice: User, bob: User, browser: Client, bobs_browser: Client
) -> None:
    create_own(alice)
    use = {"tools": {"use": {"kettle__pour": "always"}}}
    post = {"content_type": "application/json"}
    assert browser.post("/api/v1/conversations", use, **post).status_code == 201
    refused = bobs_browser.post("/api/v1/conversations", use, **post)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_tools")
    assert "kettle__pour" not in json.dumps(bobs_browser.get("/api/v1/tools").json())
    mine = bobs_browser.post("/api/v1/conversations", {}, **post).json()["id"]
    assert "kettle__" not in bobs_browser.get(f"/chat/{mine}/settings/").content.decode()
    asked = {"content": "Tea?", "tools": ["kettle__pour"]}
    refused = bobs_browser.post(f"/api/v1/conversations/{mine}/messages", asked, **post)
    assert refused.json()["code"] == "bad_tools"
    panel = {"all-kettle": "always", "rounds": "8", "parallel": "on"}
    bobs_browser.post(f"/chat/{mine}/tools/", panel)
    assert bobs_browser.get(f"/api/v1/conversations/{mine}").json()["tools"] == {}


def test_what_is_shared_compared_and_exported(
    alice: User, bob: User, bobs_browser: Client, server: object
) -> None:
    create_own(alice)
    conversation = told(alice, "Tea?", "Two cups.")
    conversation.tools = {"use": {"kettle__pour": "always", "calculator": "ask"}}
    conversation.save()
    token = sharing.share(alice, conversation).token
    assert "kettle" not in bobs_browser.get(f"/chat/shared/{token}/").content.decode()
    offered = build.for_next(conversation, "More?").offer.definitions()
    assert [tool["function"]["name"] for tool in offered] == ["calculator", "kettle__pour"]
    assert offered == build.for_next(conversation, "And now?").offer.definitions()
    # Should such settings ever come to somebody else, they name nothing of his.
    conversation.owner = bob
    (left,) = build.for_next(conversation, "More?").offer.tools
    assert left.name == "calculator"


async def test_nobody_else_calls_it(alice: User, bob: User) -> None:
    server = await in_db(create_own, alice)
    with pytest.raises(ToolError, match="no longer exists"):
        await mcp_tools.call_tool(server.pk, "pour", bob, {"cups": 1})
    with pytest.raises(ToolError, match="is a private address"):
        await mcp_tools.call_tool(server.pk, "pour", alice, {"cups": 1})


@pytest.fixture
def _as_if_public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.core.outgoing.is_public", lambda address: True)


@pytest.mark.usefixtures("_as_if_public")
async def test_result_of_a_personal_tool_server_is_bounded(
    alice: User, http_kettle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = crypto.encrypt(KEY)
    server = await in_db(create_own, alice, url=http_kettle, encrypted_key=key)
    assert (await discovery.refresh_tools(server)).error == ""
    monkeypatch.setattr(mcp_connection, "MAX_BYTES", 100_000)
    assert (
        await mcp_tools.call_tool(server.pk, "story", alice, {"characters": 20_000}) == "x" * 20_000
    )
    with pytest.raises(ToolError, match="Continue without it"):
        await mcp_tools.call_tool(server.pk, "story", alice, {"characters": 200_000})


class FakeConnection:
    """Calls wait until `may_end` is set; listing the tools runs `on_list` first."""

    def __init__(self, on_list: Callable[[], Awaitable[object]] | None = None) -> None:
        self.may_end = asyncio.Event()
        self.calls = 0
        self.on_list = on_list

    async def list_tools(self, *, cursor: str | None = None) -> SimpleNamespace:
        if self.on_list is not None:
            await self.on_list()
        return SimpleNamespace(tools=[], next_cursor=None)

    async def call_tool(self, name: str, arguments: object = None) -> str:
        self.calls += 1
        await self.may_end.wait()
        return "done"

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @asynccontextmanager
        async def connect(target: object) -> AsyncIterator[FakeConnection]:
            yield self

        monkeypatch.setattr(mcp_connection, "connect", connect)


async def test_a_check_that_an_edit_has_overtaken_is_not_saved(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await in_db(create_own, alice, tools=[])

    async def edit() -> None:
        await ToolServer.objects.filter(pk=server.pk).aupdate(url="https://other.example/mcp")

    FakeConnection(on_list=edit).install(monkeypatch)
    await discovery.refresh_tools(server)
    assert (await ToolServer.objects.aget()).checked_at is None


def test_switched_off(alice: User, browser: Client, settings: Any) -> None:
    mine = create_own(alice)
    assert [tool.name for tool in mcp_tools.tools_for(alice.pk)] == ["kettle__pour"]
    settings.MCP_OWN = False
    assert mcp_tools.tools_for(alice.pk) == []
    page = browser.get("/tools/").content.decode()
    assert "Personal tool servers are disabled here." in page
    assert "/tools/add-own/" not in page
    assert browser.post("/tools/add-own/", given("https://x.example/mcp")).status_code == 403
    for action in ("", "look/"):
        assert browser.post(f"/tools/{mine.pk}/{action}").status_code == 403
    assert browser.post(f"/tools/{mine.pk}/remove/").status_code == 302
    assert not ToolServer.objects.exists()


async def test_one_person_does_not_have_all_connections(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_PER_PERSON", 2)
    fake = FakeConnection()
    fake.install(monkeypatch)

    def call(number: int, person: User) -> asyncio.Task[str]:
        target = Target(number, "http")
        return asyncio.create_task(sessions.call(target, person.pk, "pour", {}))

    calls = [call(1, alice), call(2, alice)]
    await until(lambda: fake.calls == 2)
    with pytest.raises(
        mcp_connection.ToolServerUnavailable, match="2 connections to tool servers are in use"
    ):
        await call(3, alice)
    calls += [call(3, bob)]
    await until(lambda: fake.calls == 3)
    fake.may_end.set()
    assert await asyncio.gather(*calls) == ["done"] * 3
    assert await call(3, alice) == "done"  # an idle connection of hers makes room


def test_skipped_tools_are_capped(alice: User) -> None:
    bad = [SimpleNamespace(name=f"t{n}", input_schema={}) for n in range(500)]
    found, skipped = discovery.select_tools("k", bad)
    assert found == []
    assert skipped[-1] == "480 more were skipped."


async def test_a_closed_page_does_not_stop_the_check(
    alice: User, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    began, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def refresh(server: ToolServer) -> ToolServer:
        began.set()
        await may_end.wait()
        ended.set()
        return server

    monkeypatch.setattr(discovery, "refresh_tools", refresh)
    request = RequestFactory().post("/tools/1/look/")
    request.user = alice
    server = await in_db(create_own, alice)
    asking = asyncio.create_task(views.refresh(request, server.pk))
    await began.wait()
    asking.cancel()
    await asyncio.wait([asking])
    may_end.set()
    await ended.wait()
