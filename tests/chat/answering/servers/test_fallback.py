"""Answers of the fallback while the server of a chat does not answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import AsyncClient

from apps.chat.models import Conversation, Message, Status
from apps.runtime.async_db import in_db
from apps.servers.models import DefaultServer, Server, State, Use
from tests.chat.conftest import answer_of, ask, ask_in, events_of, text_of
from tests.conftest import create_server
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "“Big box” does not answer. This answer came from “Small box”."


@pytest.fixture
def big(tiny_model: Path) -> Iterator[LlamaProcess]:
    with LlamaProcess(tiny_model) as process:
        yield process


def set_up(big: LlamaProcess, small: LlamaProcess) -> tuple[Server, Server]:
    """The chat's default and its fallback."""
    one = create_server(big, "Big box", Use.CHAT)
    two = create_server(small, "Small box")
    DefaultServer.objects.filter(use=Use.CHAT).update(fallback=two)
    return one, two


async def test_the_fallback_answers_for_a_killed_server(
    alice_api: AsyncClient, alice_browser: AsyncClient, big: LlamaProcess, llama: LlamaProcess
) -> None:
    server, _ = await in_db(set_up, big, llama)
    conversation, first = await ask(alice_api, server=server.pk)
    await events_of(alice_api, first)
    assert (await answer_of(alice_api, first))["fallback_note"] == ""
    big.kill()  # the facts still say that it is ready
    second = await ask_in(alice_api, conversation)
    events = await events_of(alice_api, second, after="0")
    assert text_of(events)
    asking = "“Big box” does not answer. Asking “Small box”…"
    assert asking in [event.get("reason") for event in events]
    saved = await Message.objects.aget(pk=second)
    assert (saved.status, saved.fallback_note) == (Status.COMPLETE, SAID)
    assert (await Conversation.objects.aget(pk=conversation)).server_id == server.pk
    assert (await answer_of(alice_api, second))["fallback_note"] == SAID
    page = (await alice_browser.get(f"/chat/{conversation}/")).content.decode()
    assert page.count(SAID) == 1
    big.start()
    await Server.objects.filter(pk=server.pk).aupdate(next_check_at=None, checked_at=None)
    third = await ask_in(alice_api, conversation)
    await events_of(alice_api, third)
    assert (await answer_of(alice_api, third))["fallback_note"] == ""


async def test_a_server_known_to_be_away_is_not_asked(
    alice_api: AsyncClient, big: LlamaProcess, llama: LlamaProcess
) -> None:
    server, _ = await in_db(set_up, big, llama)
    big.kill()
    _, answer = await ask(alice_api)
    await events_of(alice_api, answer)
    assert (await Server.objects.aget(pk=server.pk)).state == State.UNREACHABLE
    assert (await Message.objects.aget(pk=answer)).fallback_note == SAID


async def test_without_a_fallback_the_answer_fails(
    alice_api: AsyncClient, big: LlamaProcess, llama: LlamaProcess
) -> None:
    await in_db(set_up, big, llama)
    await DefaultServer.objects.filter(use=Use.CHAT).aupdate(fallback=None)
    big.kill()
    _, answer = await ask(alice_api)
    end = (await events_of(alice_api, answer))[-1]
    assert (end.name, end["code"]) == ("error", "unreachable")
    assert (await Message.objects.aget(pk=answer)).fallback_note == ""


async def test_both_away(alice_api: AsyncClient, big: LlamaProcess, llama: LlamaProcess) -> None:
    _, small = await in_db(set_up, big, llama)
    await Server.objects.filter(pk=small.pk).aupdate(base_url="http://127.0.0.1:9/v1")
    big.kill()
    _, answer = await ask(alice_api)
    assert (await events_of(alice_api, answer))[-1].name == "error"
    saved = await Message.objects.aget(pk=answer)
    assert (saved.status, saved.fallback_note) == (Status.FAILED, "")
