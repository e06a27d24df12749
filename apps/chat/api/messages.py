"""Messages over HTTP: asking, editing, deleting and restoring."""

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router, Schema, Status

from apps.chat.answering import sse
from apps.chat.api.schemas import (
    StartedOut,
    TurnOut,
    answer_started,
    events_url,
    message_out,
    started_out,
)
from apps.chat.conversations import branches, services
from apps.chat.lookups import find_message, get_conversation, get_message
from apps.chat.models import AnswerRequest, Conversation, Message, SamplingParams, ToolSettings
from apps.chat.prompt import response_format as response_formats
from apps.chat.tools import settings as tool_settings
from apps.core.api import NotFound, owner

router = Router()


class ToolUse(Schema):
    name: str
    approval: Literal["always", "ask"] | None = None


class MessageIn(Schema):
    content: str
    parent: int | None = None
    params: SamplingParams | None = None
    response_format: dict[str, Any] | None = None
    tools: list[str | ToolUse] | None = None
    attachments: list[int] = []


class EditIn(Schema):
    content: str


class EditedOut(Schema):
    question: int
    answer: StartedOut


class RemovedOut(Schema):
    id: int
    messages: int


@router.post("/conversations/{pk}/messages", response={202: TurnOut})
def ask(request: HttpRequest, pk: int, data: MessageIn) -> Any:
    """Ask a question and start its answer. Follow it at `events`, or get it later.

    With `Accept: text/event-stream` this response streams the events: first `turn`, with the JSON
    of the usual response, then those of `events`. After a broken connection, continue there.
    """
    conversation = get_conversation(request, pk)
    response_format = data.response_format
    if response_format is not None:
        response_format = response_formats.check(response_format) or None
    options = AnswerRequest(
        params=data.params or SamplingParams(),
        response_format=response_format,
        tools=None if data.tools is None else _restricted_tools(conversation, data.tools),
    )
    held = sse.reserve_stream(request) if sse.accepts_events(request) else None
    question, answer = services.ask(
        conversation,
        data.content,
        parent=None if data.parent is None else find_message(conversation, data.parent),
        request=options,
        files=[str(pk) for pk in data.attachments],
    )
    turn = TurnOut(
        question=message_out(question), answer=answer_started(answer), events=events_url(answer)
    )
    if held is not None:
        return sse.response(answer, held, turn=turn.model_dump_json())
    return Status(202, turn)


@router.post("/messages/{pk}/edit", response={202: EditedOut})
def edit_question(request: HttpRequest, pk: int, data: EditIn) -> Any:
    """Edit a question and answer it. The original is kept."""
    question, answer = branches.edit(get_message(request, pk), data.content)
    return Status(202, {"question": question.pk, "answer": started_out(answer)})


@router.delete("/messages/{pk}", response=RemovedOut)
def delete_message(request: HttpRequest, pk: int) -> Any:
    """Delete a message and everything after it. `restore` brings it back within 24 hours."""
    deleted = branches.delete(get_message(request, pk))
    return {"id": deleted.root.pk, "messages": deleted.messages}


@router.post("/messages/{pk}/restore", response={204: None})
def restore_message(request: HttpRequest, pk: int) -> Any:
    """Restore a deleted message and everything that was deleted with it."""
    root = Message.objects.deleted_by(owner(request)).filter(pk=pk).first()
    if root is None:
        raise NotFound("removed message")
    branches.restore(root)
    return Status(204, None)


def _restricted_tools(conversation: Conversation, wanted: list[str | ToolUse]) -> ToolSettings:
    use = {
        tool if isinstance(tool, str) else tool.name: None
        if isinstance(tool, str)
        else tool.approval
        for tool in wanted
    }
    return tool_settings.restrict(conversation.tool_settings, use, conversation.owner_id)
