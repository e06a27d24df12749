"""Long chats and presets come back from slot files after the model server was started again."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.chat.answering import prefill
from apps.chat.conversation_list import library
from apps.chat.models import Conversation, SystemPrompt
from apps.runtime.async_db import in_db
from apps.servers.models import Server, SlotFile, SlotRestores, Use
from apps.servers.services import refresh_server
from apps.servers.slot_files import prompts
from tests.chat.answering.test_prefill import cached, open_long
from tests.conftest import create_server
from tests.llama_process import LlamaProcess
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

PRESET = "You know all about kettles, and answer in one short sentence. " * 20


@pytest.fixture
def saving_server(saving_llama: LlamaProcess) -> Server:
    saving_llama.restart()
    return create_server(saving_llama, "Saving", Use.CHAT)


def open_preset(owner: User) -> Conversation:
    prompt, _ = SystemPrompt.objects.get_or_create(owner=owner, name="Kettles", text=PRESET)
    return Conversation.objects.create(owner=owner, system_prompt=prompt)


async def read_ahead(conversation: Conversation) -> None:
    prefill.current_queue().prefill(conversation, "")
    await prefill.join(conversation.pk, "")


async def test_a_chat_saved_at_idle_is_restored_for_its_question(
    alice: User, alice_api: AsyncClient, saving_server: Server, saving_llama: LlamaProcess
) -> None:
    conversation = await in_db(open_long, alice)
    await read_ahead(conversation)
    file = await in_db(SlotFile.objects.get)
    assert file.source == f"conversation:{conversation.pk}"
    saving_llama.restart()
    assert await cached(alice_api, conversation, "And where is the cup?") > 0.9
    found = await in_db(SlotRestores.objects.get)
    assert (found.count, found.failed_in_row) == (1, 0)
    assert found.seconds_saved > 0


async def test_a_preset_is_restored_for_every_chat_with_it(
    alice: User, saving_server: Server, saving_llama: LlamaProcess
) -> None:
    await read_ahead(await in_db(open_preset, alice))
    assert (await in_db(SlotFile.objects.get)).source == ""
    saving_llama.restart()
    await read_ahead(await in_db(open_preset, alice))
    assert (await in_db(SlotRestores.objects.get)).count == 1


async def test_it_is_restored_once_although_the_restart_is_noticed_later(
    alice: User, alice_api: AsyncClient, saving_server: Server, saving_llama: LlamaProcess
) -> None:
    conversation = await in_db(open_long, alice)
    await read_ahead(conversation)
    saving_llama.restart()
    await cached(alice_api, conversation, "And where is the cup?")
    await refresh_server(await in_db(Server.objects.get), max_age=timedelta(0))
    await read_ahead(conversation)
    assert (await in_db(SlotRestores.objects.get)).count == 1


async def test_what_a_slot_still_holds_is_not_restored(
    alice: User, alice_api: AsyncClient, saving_server: Server
) -> None:
    conversation = await in_db(open_long, alice)
    await read_ahead(conversation)
    assert await cached(alice_api, conversation, "And where is the cup?") > 0.9
    assert not await in_db(SlotRestores.objects.exists)


async def test_a_long_chat_is_saved_after_its_answer(
    alice: User,
    alice_api: AsyncClient,
    saving_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefill, "KEEP_AFTER_SECONDS", 0.0)
    conversation = await in_db(open_long, alice)
    await cached(alice_api, conversation, "And where is the cup?")
    await until(lambda: in_db(SlotFile.objects.exclude(prefix="").exists))


async def test_a_question_does_not_wait_for_a_slow_file(
    alice: User,
    alice_api: AsyncClient,
    saving_server: Server,
    saving_llama: LlamaProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conversation = await in_db(open_long, alice)
    await read_ahead(conversation)
    saving_llama.restart()
    monkeypatch.setattr(prompts, "RESTORE_SECONDS", 0.0)
    assert await cached(alice_api, conversation, "And where is the cup?") < 0.1
    assert (await in_db(SlotRestores.objects.get)).reason == prompts.TOO_SLOW


async def test_a_deleted_chat_frees_its_file(alice: User, saving_server: Server) -> None:
    conversation = await in_db(open_long, alice)
    await read_ahead(conversation)
    await in_db(library.delete, Conversation.objects.filter(pk=conversation.pk))
    assert (await in_db(SlotFile.objects.get)).prefix == ""


async def test_a_server_without_a_folder_keeps_nothing(alice: User, server: Server) -> None:
    await read_ahead(await in_db(open_long, alice))
    assert not await in_db(SlotFile.objects.exists)
