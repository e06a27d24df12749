"""Rows by the IDs in a request: those of its user, else nothing."""

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import RequestFactory
from django.utils import timezone

from apps.chat import lookups
from apps.chat.models import Conversation, Message, Role, SystemPrompt
from apps.core.api import NotFound


def request_of(user: User) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = user
    return request


@pytest.fixture
def question(alice: User) -> Message:
    conversation = Conversation.objects.create(owner=alice)
    return Message.objects.create(conversation=conversation, role=Role.USER, content="Why?")


def test_lookups_find_rows_of_their_owner_alone(alice: User, bob: User, question: Message) -> None:
    answer = Message.objects.create(
        conversation=question.conversation, parent=question, role=Role.ASSISTANT
    )
    prompt = SystemPrompt.objects.create(owner=alice, name="p")
    for find, pk in (
        (lookups.get_conversation, question.conversation_id),
        (lookups.get_message, question.pk),
        (lookups.get_answer, answer.pk),
        (lookups.get_prompt, prompt.pk),
    ):
        found = find(request_of(alice), pk)
        assert found is not None
        assert found.pk == pk
        with pytest.raises(NotFound):
            find(request_of(bob), pk)


def test_get_answer_finds_no_question(alice: User, question: Message) -> None:
    with pytest.raises(NotFound, match="answer"):
        lookups.get_answer(request_of(alice), question.pk)


def test_find_message_finds_none_that_was_deleted_or_is_of_another_chat(
    alice: User, question: Message
) -> None:
    assert lookups.find_message(question.conversation, question.pk) == question
    with pytest.raises(NotFound):
        lookups.find_message(Conversation.objects.create(owner=alice), question.pk)
    Message.objects.filter(pk=question.pk).update(deleted_at=timezone.now())
    with pytest.raises(NotFound):
        lookups.find_message(question.conversation, question.pk)


def test_lookups_without_an_id_find_the_defaults(alice: User) -> None:
    request = request_of(alice)
    assert lookups.get_server(None) is None
    assert lookups.get_prompt(request, None) is None
    assert lookups.get_preset(request, None).pk is None


def test_lookups_of_an_unknown_id_raise_not_found(alice: User) -> None:
    with pytest.raises(NotFound):
        lookups.get_server(0)
    with pytest.raises(NotFound):
        lookups.get_preset(request_of(alice), 0)
