"""GET /servers/"""

import asyncio

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.models import DefaultServer, Kind, Server, State, Use
from apps.servers.pages import live
from apps.servers.probing import discovery
from tests.llama_process import free_port

pytestmark = pytest.mark.django_db(transaction=True)


def create(name: str, number: int = 1) -> Server:
    """A server that was checked a moment ago: nobody asks it again."""
    server = Server.objects.create(
        name=name,
        base_url=f"http://127.0.0.1:{number}/v1",
        kind=Kind.LLAMA_SERVER,
        state=State.READY,
        checked_at=timezone.now(),
        stored_facts={
            "models": [{"id": f"model-{number}"}],
            "slots": 2,
            "slots_source": "its /props",
        },
    )
    return server


def test_index_shows_servers_uses_and_slots(browser: Client) -> None:
    DefaultServer.objects.create(use=Use.CHAT, server=create("Mine"))
    page = browser.get("/servers/").content.decode()
    assert "Mine" in page
    assert "Default for chat" in page
    assert page.count("box-idle") == 2
    assert "Mine: First available model" in page


def test_index_with_many_servers_and_models_is_bounded(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis has a hundred connections for a process: three people look, one server holds many."""
    for number in range(64):
        create(f"Server {number}", number + 1)
    models = [{"id": f"model-{number}", "state": "loaded"} for number in range(60)]
    Server.objects.filter(name="Server 0").update(kind=Kind.ROUTER, stored_facts={"models": models})

    @async_to_sync
    async def probe() -> list[int]:
        viewer = await in_db(User.objects.get, username="alice")
        servers = await in_db(lambda: list(Server.objects.prefetch_related("defaults")))
        shown = await asyncio.gather(
            *(live.read_cards(servers, viewer=viewer, ask=False) for _ in range(3))
        )
        await close_async_redis()
        return [len(cards) for cards in shown]

    assert probe() == [64, 64, 64]
    assert browser.get("/servers/").status_code == 200


def test_index_does_not_wait_for_servers(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def probe(*server: object) -> ServerFacts:
        asked.append(server)
        return ServerFacts(State.UNREACHABLE)

    monkeypatch.setattr(discovery, "probe", probe)
    monkeypatch.setattr(discovery, "fetch_slots", probe)
    Server.objects.create(name="Away", base_url="http://10.255.255.1:9/v1")
    assert "Not checked yet" in browser.get("/servers/").content.decode()
    assert asked == []
    browser.get("/servers/cards/")  # as the page does at once
    assert len(asked) == 1


def test_no_server_yet(staff_browser: Client, browser: Client) -> None:
    staff = staff_browser.get("/servers/").content.decode()
    assert "No model servers yet" in staff
    assert "llama-server -m model.gguf -np 4 -c 16384" in staff
    assert "Depends on your build" in staff
    others = browser.get("/servers/").content.decode()
    assert "Ask an admin to add one" in others
    assert "llama-server -m" not in others


def test_only_staff_sees_what_changes_things(browser: Client, staff_browser: Client) -> None:
    server = create("Mine")
    Server.objects.update(
        stored_facts=server.stored_facts | {"advice": ["Start it with --api-key."]}
    )
    staff, others = (who.get("/servers/").content.decode() for who in (staff_browser, browser))
    for words in ("Add server", f'"/servers/{server.pk}/"', "/servers/defaults/", "--api-key"):
        assert words in staff
        assert words not in others


def test_everyone_finds_the_history_of_a_server(browser: Client) -> None:
    server = create("Mine")
    assert f'href="/servers/{server.pk}/history/"' in browser.get("/servers/").content.decode()


def test_the_key_is_nowhere_on_the_page(staff_browser: Client) -> None:
    server = create("Mine")
    server.set_key("very-secret")
    server.save()
    assert "very-secret" not in staff_browser.get("/servers/").content.decode()


def test_a_name_is_text(staff_browser: Client) -> None:
    server = create("<b>x</b>")
    facts = {"models": [{"id": "<script>x</script>", "actions": ["warm"]}], "build": "<i>b</i>"}
    Server.objects.filter(pk=server.pk).update(stored_facts=facts)
    page = staff_browser.get("/servers/").content.decode()
    for markup in ("<b>x", "<script>x", "<i>b"):
        assert markup not in page


@pytest.mark.parametrize(("address", "news"), [("/servers/", 3), ("/servers/cards/", 0)])
def test_ten_servers_cost_no_more_queries_than_one(
    staff_browser: Client,
    carol: User,
    address: str,
    news: int,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    create("One", free_port())
    staff_browser.get(address)
    # The session, the user, the servers, their defaults, the actions on their models, twice a
    # minute what was recorded of them, of their GPUs, loads and prompts; on a whole page what
    # is new in chats, the alerts, and its look.
    with django_assert_max_num_queries(10 + news):
        staff_browser.get(address)
    for number in range(10):
        create(f"Server {number}", free_port())
    with django_assert_max_num_queries(10 + news):
        staff_browser.get(address)


def test_servers_index_refuses_post(browser: Client) -> None:
    assert browser.post("/servers/").status_code == 405


def test_a_stranger_is_sent_to_the_login(client: Client) -> None:
    assert client.get("/servers/").url.startswith("/login/")  # type: ignore[attr-defined]
