"""What is kept of the prompt cache with each answer, on a real llama.cpp."""

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.chat.models import Conversation, Message, Role, SystemPrompt
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.chat.conftest import ask_in, events_of

pytestmark = pytest.mark.django_db(transaction=True)


def open_conversation(owner: User, text: str) -> Conversation:
    prompt = SystemPrompt.objects.create(owner=owner, name=text, text=text)
    return Conversation.objects.create(owner=owner, system_prompt=prompt)


async def answer(api: AsyncClient, conversation: Conversation, question: str) -> Message:
    pk = await ask_in(api, conversation.pk, question)
    await events_of(api, pk)
    return await Message.objects.select_related("system_prompt").aget(pk=pk)


async def test_nothing_is_lost_in_an_ordinary_conversation(
    alice: User, alice_api: AsyncClient, server: Server
) -> None:
    conversation = await in_db(open_conversation, alice, "Be brief.")
    for question in ("What is a kettle? " * 20, "And a stove?", "And a cup?"):
        said = await answer(alice_api, conversation, question)
        assert (said.reprocessed_tokens, said.reprocessed_reason) == (0, "")
        assert said.system_prompt == conversation.system_prompt


async def test_says_that_the_system_prompt_was_changed(
    alice: User, alice_api: AsyncClient, server: Server
) -> None:
    conversation = await in_db(open_conversation, alice, "Be brief.")
    await answer(alice_api, conversation, "What is a kettle? " * 40)
    other = await in_db(open_conversation, alice, "Xylophones are to be mentioned. ")
    conversation.system_prompt = other.system_prompt
    await conversation.asave(update_fields=["system_prompt"])
    said = await answer(alice_api, conversation, "And a stove?")
    assert said.reprocessed_tokens > 500
    assert said.reprocessed_reason.startswith("the system prompt changed")


async def test_the_page_says_it(alice: User, alice_browser: AsyncClient, server: Server) -> None:
    conversation = await Conversation.objects.acreate(owner=alice)
    question = await Message.objects.acreate(conversation=conversation, role=Role.USER, content="?")
    said = await Message.objects.acreate(
        conversation=conversation,
        parent=question,
        role=Role.ASSISTANT,
        content="!",
        reprocessed_tokens=4000,
        reprocessed_reason="the model was unloaded in between",
    )
    conversation.active_leaf = said
    await conversation.asave()
    page = (await alice_browser.get(f"/chat/{conversation.pk}/")).content.decode()
    assert "4,000 tokens reprocessed" in page
    assert "the model was unloaded in between" in page
