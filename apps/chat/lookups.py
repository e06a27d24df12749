"""Rows of the current user by the IDs in a request. Anything else is a 404."""

from django.http import HttpRequest

from apps.chat.errors import TemporaryChat
from apps.chat.models import Conversation, Document, Message, Preset, Project, SystemPrompt
from apps.core.api import NotFound, get_owned, owner
from apps.servers.models import Server


def get_conversation(request: HttpRequest, pk: int) -> Conversation:
    conversation = Conversation.of(owner(request), pk)
    if conversation is None:
        raise NotFound("conversation")
    return conversation


def get_kept(request: HttpRequest, pk: int) -> Conversation:
    """Return a conversation that is to leave the chat: none that is temporary.

    Raises:
        TemporaryChat
    """
    found = get_conversation(request, pk)
    if found.temporary_until is not None:
        raise TemporaryChat
    return found


def get_message(request: HttpRequest, pk: int) -> Message:
    return get_owned(Message, request, pk)


def get_answer(request: HttpRequest, pk: int, *, with_turn: bool = True) -> Message:
    """Return an answer.

    Args:
        with_turn: with its question and its conversation, which its events do not need.
    """
    mine = Message.objects.owned_by(owner(request)).answers().filter(pk=pk)
    answers = (mine.select_related("parent", "conversation") if with_turn else mine).live()
    if not answers:
        raise NotFound("answer")
    return answers[0]


def find_message(conversation: Conversation, pk: int) -> Message:
    message = conversation.messages.filter(pk=pk, deleted_at=None).first()
    if message is None:
        raise NotFound("message")
    return message


def get_server(pk: int | None) -> Server | None:
    if pk is None:
        return None
    server = Server.objects.filter(pk=pk).first()
    if server is None:
        raise NotFound("server")
    return server


def get_prompt(request: HttpRequest, pk: int | None) -> SystemPrompt | None:
    return None if pk is None else get_owned(SystemPrompt, request, pk)


def get_preset(request: HttpRequest, pk: int | None) -> Preset:
    """Return a preset; an empty one for None."""
    if pk is None:
        return Preset()
    return get_owned(Preset.objects.select_related("server", "system_prompt"), request, pk)


def get_project(request: HttpRequest, pk: int) -> Project:
    found = Project.objects.select_related("system_prompt", "preset", "server", "owner")
    return get_owned(found, request, pk)


def get_document(request: HttpRequest, pk: int) -> Document:
    return get_owned(Document.objects.select_related("project", "owner"), request, pk)
