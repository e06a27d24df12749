"""Conversations over HTTP."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from apps.chat.answering import titles
from apps.chat.api.schemas import MessageOut, ToolsIn, message_out
from apps.chat.conversation_list import library
from apps.chat.conversations import projects, services, temporary
from apps.chat.conversations.branch_view import active_branch
from apps.chat.lookups import (
    find_message,
    get_conversation,
    get_preset,
    get_project,
    get_prompt,
    get_server,
)
from apps.chat.models import (
    TITLE_LENGTH,
    Conversation,
    SamplingParams,
)
from apps.chat.prompt import response_format as response_formats
from apps.core.api import Page, owner, page

router = Router()


class ConversationSettings(Schema):
    project: int | None = None
    server: int | None = None
    system_prompt: int | None = None
    params: SamplingParams | None = None
    response_format: dict[str, Any] | None = None
    tools: ToolsIn | None = None


class ConversationIn(ConversationSettings):
    title: str = Field("", max_length=TITLE_LENGTH)
    preset: int | None = None
    """Its settings take the place of the project's."""
    model: str = Field("", max_length=300)
    temporary: bool = False
    """In no list, search or export, and deleted permanently after 23 hours."""


class ConversationPatch(ConversationSettings):
    title: str | None = Field(None, min_length=1, max_length=TITLE_LENGTH)
    model: str | None = Field(None, max_length=300)
    active_leaf: int | None = None
    pinned: bool | None = None
    archived: bool | None = None
    tags: list[str] | None = None
    temporary: Literal[False] | None = None
    """false: keep a temporary conversation. There is no way back."""


class ConversationOut(Schema):
    id: int
    title: str
    project: int | None
    server: int | None
    model: str
    system_prompt: int | None
    params: dict[str, Any]
    response_format: dict[str, Any]
    active_leaf: int | None
    pinned: bool
    archived: bool
    tags: list[str]
    tools: dict[str, Any]
    created: datetime
    updated: datetime
    temporary_until: datetime | None
    """When it is deleted permanently; null: it is kept."""


class ConversationWithMessages(ConversationOut):
    messages: list[MessageOut]


class TitleOut(Schema):
    title: str
    may_come: bool
    """True if the model may still write a better one."""


@router.get("/conversations", response=Page[ConversationOut])
def list_conversations(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    """List your conversations, newest first. Temporary ones are in no list."""
    conversations = Conversation.objects.owned_by(owner(request)).prefetch_related("tags")
    return page(conversations, conversation_out, limit=limit, after=after, newest_first=True)


@router.post("/conversations", response={201: ConversationOut})
def open_conversation(request: HttpRequest, data: ConversationIn) -> Any:
    """Create a conversation. Settings you pass override those of the preset or the project."""
    project = None if data.project is None else get_project(request, data.project)
    preset = get_preset(request, data.preset)
    if project is not None and data.preset is None:
        preset = projects.as_preset(project)
    conversation = services.open_conversation(
        is_temporary=data.temporary,
        owner=owner(request),
        title=data.title,
        server=get_server(data.server) or preset.server,
        model=data.model or preset.model,
        system_prompt=get_prompt(request, data.system_prompt) or preset.system_prompt,
        params=preset.sampling.updated_by(data.params or SamplingParams()),
        response_format=response_formats.check(data.response_format) or preset.response_format,
        tools=preset.tool_settings if data.tools is None else data.tools.checked(owner(request).pk),
        project=project,
    )
    return Status(201, conversation_out(conversation))


@router.get("/conversations/{int:pk}", response=ConversationWithMessages)
def read_conversation(request: HttpRequest, pk: int, tree: bool = False) -> Any:
    """Get a conversation with the messages of the active branch. `tree`: with all of them."""
    conversation = get_conversation(request, pk)
    if tree:
        messages = conversation.messages.prefetch_related("tool_calls").live()
    else:
        messages = [view.message for view in active_branch(conversation)]
    return ConversationWithMessages(
        **conversation_out(conversation).model_dump(),
        messages=[message_out(message) for message in messages],
    )


@router.patch("/conversations/{int:pk}", response=ConversationOut)
def change_conversation(request: HttpRequest, pk: int, data: ConversationPatch) -> Any:
    """Change the fields that you pass."""
    conversation = get_conversation(request, pk)
    changed = _changed_fields(request, data)
    if data.tags is not None:
        library.set_tags(conversation, library.parse_tags(",".join(data.tags)))
    for name, value in changed.items():
        setattr(conversation, name, value)
    if data.temporary is False:
        temporary.keep(conversation)
    # No other field: a question may be asked meanwhile, and saves its own.
    conversation.save(update_fields=[*changed, "updated"])
    if data.active_leaf is not None:
        services.show_branch(find_message(conversation, data.active_leaf))
        conversation.refresh_from_db()
    return conversation_out(conversation)


def _changed_fields(request: HttpRequest, data: ConversationPatch) -> dict[str, Any]:
    given = data.model_fields_set
    changed: dict[str, Any] = {}
    if "project" in given:
        found = None if data.project is None else get_project(request, data.project)
        changed["project"] = found
    if "server" in given:
        changed["server"] = get_server(data.server)
    if "system_prompt" in given:
        changed["system_prompt"] = get_prompt(request, data.system_prompt)
    if "params" in given:
        changed["params"] = data.params.to_json() if data.params else {}
    if data.tools is not None:
        changed["tools"] = data.tools.checked(owner(request).pk).to_json()
    if data.response_format is not None:
        changed["response_format"] = response_formats.check(data.response_format)
    for name in ("title", "model", "pinned", "archived"):
        if (value := getattr(data, name)) is not None:
            changed[name] = value
    return changed


@router.delete("/conversations/{int:pk}", response={204: None})
def delete_conversation(request: HttpRequest, pk: int) -> Any:
    """Delete a conversation permanently."""
    services.delete(get_conversation(request, pk))
    return Status(204, None)


@router.get("/conversations/{int:pk}/title", response=TitleOut)
def read_title(request: HttpRequest, pk: int) -> Any:
    """Get the title. A title that you set by PATCH stays."""
    conversation = get_conversation(request, pk)
    return {"title": conversation.title, "may_come": titles.may_change(conversation)}


def conversation_out(conversation: Conversation) -> ConversationOut:
    return ConversationOut(
        id=conversation.pk,
        title=conversation.title,
        project=conversation.project_id,
        server=conversation.server_id,
        model=conversation.model,
        system_prompt=conversation.system_prompt_id,
        params=conversation.params,
        response_format=conversation.response_format,
        active_leaf=conversation.active_leaf_id,
        pinned=conversation.pinned,
        archived=conversation.archived,
        tags=[tag.name for tag in conversation.tags.all()],
        tools=conversation.tool_settings.to_public_json(),
        created=conversation.created,
        updated=conversation.updated,
        temporary_until=conversation.temporary_until,
    )
