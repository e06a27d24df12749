"""Reading a prompt ahead, on a real llama.cpp."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from pytest_django import Settings

from apps.chat.answering import prefill
from apps.chat.answering.side_requests import PromptNotCached, complete_on_idle_slot
from apps.chat.models import Conversation, Message, Role
from apps.chat.prompt import build
from apps.chat.prompt.prepare import prepare
from apps.llm import permits
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import hold_slot, refresh_server, slot_terms
from tests.chat.conftest import ask_in, events_of

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "The kettle stands on the stove, and the stove is warm. "  # a token a byte here


def open_long(owner: User, words: str = LONG) -> Conversation:
    """A conversation that the model server has never seen."""
    conversation = Conversation.objects.create(owner=owner, title="Kettles")
    parent = None
    for role, text in [(Role.USER, words * 20), (Role.ASSISTANT, words * 20)]:
        parent = Message.objects.create(
            conversation=conversation, parent=parent, role=role, content=text
        )
    conversation.active_leaf = parent
    conversation.save()
    return conversation


async def cached(api: AsyncClient, conversation: Conversation, question: str) -> float:
    """The share of the prompt that had been read when the question came."""
    answer = await ask_in(api, conversation.pk, question)
    usage = (await events_of(api, answer))[-2]
    return float(usage["cached_tokens"] / usage["prompt_tokens"])


async def test_the_question_finds_its_prompt_read(
    alice: User, alice_api: AsyncClient, server: Server
) -> None:
    conversation = await in_db(open_long, alice)
    prefill.current_queue().prefill(conversation, "And where is")
    await prefill.join(conversation.pk, "And where is the cup?")
    assert await cached(alice_api, conversation, "And where is the cup?") > 0.9


async def test_without_it_everything_is_read_when_the_question_comes(
    alice: User, alice_api: AsyncClient, server: Server
) -> None:
    conversation = await in_db(
        open_long, alice, "Nothing of this was ever sent before, not a bit. "
    )
    assert await cached(alice_api, conversation, "And where is the cup?") < 0.1


async def test_a_question_joins_what_is_being_read(
    alice: User, alice_api: AsyncClient, server: Server
) -> None:
    conversation = await in_db(open_long, alice, "It is read while the question comes, and once. ")
    prefill.current_queue().prefill(conversation, "")
    assert await cached(alice_api, conversation, "And where is the cup?") > 0.8


async def test_a_question_that_begins_otherwise_does_not_wait(alice: User, server: Server) -> None:
    conversation = await in_db(open_long, alice)
    queue = prefill.current_queue()
    queue.prefill(conversation, "Something")
    await asyncio.wait_for(prefill.join(conversation.pk, "Else"), timeout=60)
    assert not queue.tasks


async def test_what_only_a_read_prompt_is_worth_is_not_said_on_another(
    alice: User, alice_api: AsyncClient, server: Server
) -> None:
    """Two conversations share a beginning at most: a title must not cost one its place."""
    conversation = await in_db(open_long, alice, "Somebody else has taken the place of this. ")
    ask = await in_db(lambda: build.side_request(conversation, "A title?", max_tokens=4))
    prepared = prepare(ask, await refresh_server(server))
    with pytest.raises(PromptNotCached):
        await complete_on_idle_slot(ask.person, prepared, label="Title", only_if_cached=True)
    await complete_on_idle_slot(ask.person, prepared, label="Summary")
    assert await complete_on_idle_slot(ask.person, prepared, label="Title", only_if_cached=True)


async def test_prefill_takes_no_busy_slot(
    alice: User, server: Server, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill, "RETRY_SECONDS", 0.05)
    settings.IDLE_AFTER_CHAT_SECONDS = 600
    conversation = await in_db(open_long, alice)
    seen = await refresh_server(server)
    async with AsyncExitStack() as others:
        for _ in range(seen.slots):
            await others.enter_async_context(hold_slot(seen, lane=Lane.BATCH))
        prefill.current_queue().prefill(conversation, "")
        await prefill.join(conversation.pk, "Ends after some attempts")
        occupancy = await permits.read_occupancy(slot_terms(seen))
        assert [entry.lane for entry in occupancy.held] == ["batch"] * seen.slots
        assert occupancy.people == 1  # who opens a conversation is about to ask


async def test_a_short_prompt_is_not_worth_it(alice: User, server: Server) -> None:
    conversation = await in_db(Conversation.objects.create, owner=alice)
    prefill.current_queue().prefill(conversation, "Hello")
    await prefill.join(conversation.pk, "Hello")
    assert (await permits.read_occupancy(slot_terms(await refresh_server(server)))).people == 0


def test_the_page_tells(browser: Client, alice: User, server: Server) -> None:
    conversation = open_long(alice)
    response = browser.post(f"/chat/{conversation.pk}/ahead/", {"draft": "And"})
    assert response.status_code == 204


def test_prefill_of_someone_elses_conversation_is_not_found(
    bobs_browser: Client, alice: User
) -> None:
    conversation = Conversation.objects.create(owner=alice)
    assert bobs_browser.post(f"/chat/{conversation.pk}/ahead/").status_code == 404


def test_telling_is_a_post(browser: Client, alice: User) -> None:
    conversation = Conversation.objects.create(owner=alice)
    assert browser.get(f"/chat/{conversation.pk}/ahead/").status_code == 405
