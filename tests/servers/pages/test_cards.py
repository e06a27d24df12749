"""GET /servers/cards/: the part that is asked for every few seconds."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from apps.llm import errors
from apps.llm.client import close_clients
from apps.llm.permits import Lane
from apps.runtime.redis import close_async_redis, sync_redis
from apps.servers import services
from apps.servers.facts.slot_status import SlotStatus
from apps.servers.models import Server
from apps.servers.observations import record_error
from apps.servers.pages import live
from apps.servers.probing import discovery
from apps.servers.services import hold_slot
from tests.llama_process import LlamaProcess, free_port
from tests.markup import visible_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("idle_slots")]


def cards(browser: Client, seen: str = "") -> str:
    return browser.get("/servers/cards/", {"seen": seen}).content.decode()


@contextmanager
def held(server: Server, *labels: str, owner: int | None = None) -> Iterator[None]:
    """Permits for jobs with these labels, held by another loop as by another process."""
    ready, over = threading.Event(), threading.Event()

    async def hold(labels: tuple[str, ...]) -> None:
        if labels:
            async with hold_slot(server, lane=Lane.BATCH, label=labels[0], **who):
                await hold(labels[1:])
            return
        ready.set()
        await asyncio.to_thread(over.wait)

    async def main() -> None:
        try:
            await hold(labels)
        finally:
            await close_async_redis()

    who: dict[str, Any] = {"owner": owner} if owner is not None else {}
    thread = threading.Thread(target=lambda: async_to_sync(main)())
    thread.start()
    assert ready.wait(60)
    yield
    over.set()
    thread.join()


def test_a_shared_cache_that_requests_outgrew_is_said_with_what_to_do(
    browser: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not what tests before this one have left in its slots: that may tell that it is split.
    monkeypatch.setattr(discovery, "fetch_slots", holding(1024))
    browser.get("/servers/")
    shown = visible_text(cards(browser))
    assert "taken to be split until requests outgrow it together Assumed" in shown
    assert "share one KV cache" not in shown
    async_to_sync(record_error)(Server.objects.get(), errors.PoolExhausted("all were ended"))
    shown = visible_text(cards(browser))
    assert "Its 4 slots share one KV cache of 4,096 tokens" in shown
    assert "Start it with -np 4" in shown


def test_slots_that_hold_more_than_one_cache_leave_nothing_to_assume(
    browser: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "fetch_slots", holding(1025))
    shown = visible_text(cards(browser))
    assert "KV cache split (one per slot)" in shown
    assert "KV cache split (one per slot) Measured: slots hold more than one" in shown


def holding(tokens: int) -> Callable[..., Awaitable[list[dict[str, Any]]]]:
    """Four idle slots of 4,096 tokens, each with so many of them in its cache."""

    async def states(*args: object) -> list[dict[str, Any]]:
        return [{"id": n, "is_processing": False, "n_prompt_tokens": tokens} for n in range(4)]

    return states


def test_card_shows_state_slots_and_context(browser: Client, server: Server) -> None:
    shown = cards(browser)
    assert "ready" in visible_text(shown)
    assert "Idle." in shown
    assert shown.count("box-idle") == 4
    assert "4,096 tokens per slot" in shown
    assert "the server&#x27;s /props" in shown


def test_nothing_is_sent_where_nothing_changed(browser: Client, server: Server) -> None:
    found = re.search(r'name="seen" value="(\w+)"', cards(browser))
    assert found is not None
    again = browser.get("/servers/cards/", {"seen": found[1]})
    # Ten seconds of the charts may have begun in between.
    assert again.status_code in {200, 204}
    assert browser.get("/servers/cards/", {"seen": "other"}).status_code == 200


def test_a_job_is_named_to_staff_and_its_owner(
    browser: Client, bobs_browser: Client, staff_browser: Client, server: Server, alice: User
) -> None:
    cards(browser)  # now it is known how many slots it has
    server.refresh_from_db()
    with held(server, *["Reviews v2"] * 4, owner=alice.pk):
        for who in (browser, staff_browser):
            shown = visible_text(cards(who)).replace("&#x27;", "'")
            assert "4 of 4 slots busy with 'Reviews v2'; chat takes priority." in shown
        others = visible_text(cards(bobs_browser))
        assert "4 of 4 slots busy with a job; chat takes priority." in others
        assert "Reviews" not in others


def test_card_tells_slots_of_other_programs_from_own_ones(
    browser: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*args: object) -> list[SlotStatus]:
        return [SlotStatus(n, busy=n < 2, held=90, decoded=30, remain=70) for n in range(4)]

    monkeypatch.setattr(services, "read_slots", busy)
    shown = cards(browser)
    assert "2 requests from other programs." in shown
    assert visible_text(shown).count("Other program 30 of 100 tokens") == 2


def test_slots_are_read_once_for_all_viewers(
    browser: Client, bobs_browser: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def counted(*args: object) -> list[SlotStatus]:
        asked.append(args)
        return [SlotStatus(0, busy=True, held=5, decoded=0)]

    monkeypatch.setattr(services, "read_slots", counted)
    for who in (browser, bobs_browser, browser):
        assert "Other program" in cards(who)
    assert len(asked) == 1


def test_a_server_that_sleeps_is_not_woken(
    browser: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(browser)
    server.refresh_from_db()
    Server.objects.update(stored_facts=server.stored_facts | {"sleeping": True})
    asked = []
    monkeypatch.setattr(services, "read_slots", lambda *args: asked.append(args))
    monkeypatch.setattr(live, "ASK_EVERY_MS", 1)
    shown = cards(browser)
    assert "Sleeping. The next request wakes it." in shown
    assert asked == []


def test_a_server_that_is_away_is_named_with_its_reason(browser: Client) -> None:
    Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")
    shown = cards(browser)
    assert "Away: offline" in visible_text(shown)
    assert "Check that it is running" in shown


def test_a_refused_key_is_said(browser: Client, server: Server) -> None:
    server.set_key("wrong")
    server.save()
    shown = cards(browser)
    assert "Chat: key rejected" in visible_text(shown)
    assert "Update it under Edit" in shown


def test_one_slot_and_sixty_four(browser: Client, server: Server) -> None:
    cards(browser)
    server.refresh_from_db()
    for number, dense in ((1, False), (64, True)):
        facts = server.stored_facts | {"slots": number, "shows_slots": False}
        Server.objects.update(stored_facts=facts)
        sync_redis().flushdb()  # what was shown a second ago
        shown = cards(browser)
        assert shown.count('<li class="box') == number
        assert ("boxes-dense" in shown) is dense


def test_buttons_are_for_staff(browser: Client, staff_browser: Client, server: Server) -> None:
    assert "Warm up" in visible_text(cards(staff_browser))
    assert "Warm up" not in visible_text(cards(browser))


def test_no_server(browser: Client) -> None:
    assert "No model servers yet" in cards(browser)


def test_cards_refuse_post(browser: Client) -> None:
    assert browser.post("/servers/cards/").status_code == 405


def test_cards_without_a_login_ask_for_one(client: Client) -> None:
    answer = client.get("/servers/cards/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/login/")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    async_to_sync(close_clients)()


def test_real_requests_are_seen(browser: Client, server: Server, llama: LlamaProcess) -> None:
    """A program that does not know the workbench, on a real llama-server."""
    import openai  # noqa: TID251 - it stands for another program

    messages: list[Any] = [{"role": "user", "content": "Hi"}]
    with (
        llama.slowed(),
        openai.OpenAI(base_url=llama.base_url, api_key=llama.api_key) as client,
        client.chat.completions.create(
            model="m", stream=True, max_tokens=3000, messages=messages
        ) as stream,
    ):
        next(iter(stream))
        assert "1 request from other programs." in cards(browser)
