"""Chat over HTTP: conversations and questions. What else there is has modules of its own."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status
from pydantic_core import to_json

from apps.chat.answering import runner, sse, titles
from apps.chat.api import answers, cuts
from apps.chat.api import library as api_library
from apps.chat.api.answers import AnswerStarted, MessageOut, message_out, started
from apps.chat.api.library import preset_of, prompt_of, server_of
from apps.chat.conversations import library, services
from apps.chat.models import TITLE_LENGTH, Conversation, Preset, SystemPrompt
from apps.chat.prompt import answer_format
from apps.chat.prompt.params import Params
from apps.chat.tools import settings as tool_settings
from apps.core import tools
from apps.core.api import ApiError, NotFound, Page, owner, page
from apps.core.schemas.json_schemas import BadSchema
from apps.core.tools import Approval

router = Router(tags=["chat"])
router.add_router("", answers.router)
router.add_router("", cuts.router)
router.add_router("", api_library.router)


class SystemPromptIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    text: str = Field(min_length=1)


class SystemPromptOut(Schema):
    id: int
    name: str
    version: int
    text: str


class ToolsIn(Schema):
    """Which tools a conversation's model may call, and when each may run."""

    use: dict[str, Approval] = {}
    rounds: int = Field(tool_settings.ROUNDS, ge=1, le=tool_settings.MAX_ROUNDS)
    parallel: bool = True


class ConversationIn(Schema):
    title: str = Field("", max_length=TITLE_LENGTH)
    preset: int | None = None
    server: int | None = None
    model: str = Field("", max_length=300)
    system_prompt: int | None = None
    params: Params | None = None
    response_format: dict[str, Any] | None = None
    tools: ToolsIn | None = None


class ToolUse(Schema):
    name: str
    approval: Literal["always", "ask"] | None = None


class ToolOut(Schema):
    name: str
    title: str
    description: str
    parameters: dict[str, Any]
    approval: Approval


class ConversationPatch(Schema):
    title: str | None = Field(None, min_length=1, max_length=TITLE_LENGTH)
    server: int | None = None
    model: str | None = Field(None, max_length=300)
    system_prompt: int | None = None
    params: Params | None = None
    response_format: dict[str, Any] | None = None
    active_leaf: int | None = None
    pinned: bool | None = None
    archived: bool | None = None
    tags: list[str] | None = None
    tools: ToolsIn | None = None


class ConversationOut(Schema):
    id: int
    title: str
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


class ConversationWithMessages(ConversationOut):
    messages: list[MessageOut]


class TitleOut(Schema):
    title: str
    may_come: bool
    """Whether the model may still write a better one."""


class MessageIn(Schema):
    content: str
    parent: int | None = None
    params: Params | None = None
    response_format: dict[str, Any] | None = None
    tools: list[str | ToolUse] | None = None
    attachments: list[int] = []


class TurnOut(Schema):
    question: MessageOut
    answer: AnswerStarted
    events: str


@router.get("/system-prompts", response=Page[SystemPromptOut])
def list_system_prompts(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    """The newest version of each."""
    services.system_prompts_of(owner(request))
    prompts = SystemPrompt.objects.owned_by(owner(request)).latest_versions()
    return page(prompts, _system_prompt, limit=limit, after=after)


@router.post("/system-prompts", response={201: SystemPromptOut})
def save_system_prompt(request: HttpRequest, data: SystemPromptIn) -> Any:
    """A changed text creates a new version. Existing conversations keep theirs."""
    prompt = services.save_system_prompt(owner=owner(request), name=data.name, text=data.text)
    return Status(201, _system_prompt(prompt))


@router.get("/conversations", response=Page[ConversationOut])
def list_conversations(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    """Newest first."""
    conversations = Conversation.objects.owned_by(owner(request)).prefetch_related("tags")
    return page(conversations, _conversation, limit=limit, after=after, newest_first=True)


@router.post("/conversations", response={201: ConversationOut})
def open_conversation(request: HttpRequest, data: ConversationIn) -> Any:
    """Create a conversation. Settings you pass override those of the preset."""
    preset = Preset() if data.preset is None else preset_of(request, data.preset)
    conversation = services.open_conversation(
        owner=owner(request),
        title=data.title,
        server=server_of(data.server) or preset.server,
        model=data.model or preset.model,
        system_prompt=prompt_of(request, data.system_prompt) or preset.system_prompt,
        params=preset.params | _given(data.params),
        response_format=_format(data.response_format) or preset.response_format,
        tools=None if data.tools is None else _checked(request, data.tools.dict()),
    )
    return Status(201, _conversation(conversation))


@router.get("/conversations/{int:pk}", response=ConversationWithMessages)
def get_conversation(request: HttpRequest, pk: int, tree: bool = False) -> Any:
    """With the messages of the active branch, or with all of them."""
    conversation = _get(request, pk)
    if tree:
        messages = list(conversation.messages.prefetch_related("tool_calls"))
        runner.settle(messages)
    else:
        messages = [shown.message for shown in services.active_branch(conversation)]
    return _conversation(conversation) | {"messages": [message_out(m) for m in messages]}


@router.patch("/conversations/{int:pk}", response=ConversationOut)
def change_conversation(request: HttpRequest, pk: int, data: ConversationPatch) -> Any:
    conversation = _get(request, pk)
    given = data.dict(exclude_unset=True)
    changed: dict[str, Any] = {}
    if "server" in given:
        changed["server"] = server_of(given["server"])
    if "system_prompt" in given:
        changed["system_prompt"] = prompt_of(request, given["system_prompt"])
    if "params" in given:
        changed["params"] = _given(data.params)
    if data.tools is not None:
        changed["tools"] = _checked(request, data.tools.dict())
    if data.response_format is not None:
        changed["response_format"] = _format(data.response_format)
    for name in ("title", "model", "pinned", "archived"):
        if given.get(name) is not None:
            changed[name] = given[name]
    if given.get("tags") is not None:
        library.set_tags(conversation, library.tag_names(",".join(given["tags"])))
    for name, value in changed.items():
        setattr(conversation, name, value)
    # No other field: a question may begin meanwhile, and writes its own.
    conversation.save(update_fields=[*changed, "updated"])
    if given.get("active_leaf") is not None:
        message = conversation.messages.filter(pk=given["active_leaf"], deleted_at=None).first()
        if message is None:
            raise NotFound("message")
        services.show_branch(message)
        conversation.refresh_from_db()
    return _conversation(conversation)


@router.delete("/conversations/{int:pk}", response={204: None})
def delete_conversation(request: HttpRequest, pk: int) -> Any:
    services.delete(_get(request, pk))
    return Status(204, None)


@router.get("/conversations/{int:pk}/title", response=TitleOut)
def get_title(request: HttpRequest, pk: int) -> Any:
    """What it is called now. PATCH the conversation to call it otherwise, and that stays."""
    conversation = _get(request, pk)
    return {"title": conversation.title, "may_come": titles.may_come(conversation)}


@router.post("/conversations/{pk}/messages", response={202: TurnOut})
def ask(request: HttpRequest, pk: int, data: MessageIn) -> Any:
    """Starts an answer. Follow it at `events`, or look at it again later.

    With `Accept: text/event-stream` the events come at once, in this response: first `turn`, with
    what the JSON says, then what `events` would give. After a break go on there.
    """
    conversation = _get(request, pk)
    parent = None
    if data.parent is not None:
        parent = conversation.messages.filter(pk=data.parent, deleted_at=None).first()
        if parent is None:
            raise NotFound("message")
    asked_with: dict[str, Any] = {"params": _given(data.params)}
    if data.response_format is not None:
        asked_with["response_format"] = _format(data.response_format)
    if data.tools is not None:
        asked_with["tools"] = _tools_of_one_answer(conversation, data.tools)
    held = sse.place(request) if sse.is_wanted(request) else None
    question, answer = services.ask(
        conversation,
        data.content,
        parent=parent,
        request=asked_with,
        files=[str(pk) for pk in data.attachments],
    )
    turn = {"question": message_out(question), **started(answer)}
    if held is not None:
        return sse.response(answer, held, turn=to_json(turn).decode())
    return Status(202, turn)


@router.get("/tools", response=list[ToolOut])
def list_tools(request: HttpRequest) -> Any:
    """Tools a model can call. `approval` is the default: always, ask or never."""
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "parameters": tool.parameters,
            "approval": tool.default,
        }
        for tool in tools.available(owner(request).pk)
    ]


def _get(request: HttpRequest, pk: int) -> Conversation:
    conversation = Conversation.of(owner(request), pk)
    if conversation is None:
        raise NotFound("conversation")
    return conversation


def _format(given: dict[str, Any] | None) -> dict[str, Any]:
    try:
        return answer_format.checked(given)
    except BadSchema as error:
        raise ApiError(422, "bad_response_format", str(error)) from error


def _checked(request: HttpRequest, given: dict[str, Any]) -> dict[str, Any]:
    return tool_settings.checked(given, owner(request).pk)


def _tools_of_one_answer(conversation: Conversation, wanted: list[str | ToolUse]) -> dict[str, Any]:
    use = {
        tool if isinstance(tool, str) else tool.name: None
        if isinstance(tool, str)
        else tool.approval
        for tool in wanted
    }
    return tool_settings.only(conversation.tools, use, conversation.owner_id)


def _given(params: Params | None) -> dict[str, Any]:
    return params.dict(exclude_none=True) if params else {}


def _system_prompt(prompt: SystemPrompt) -> dict[str, Any]:
    return {
        "id": prompt.pk,
        "name": prompt.name,
        "version": prompt.version,
        "text": prompt.text,
    }


def _conversation(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.pk,
        "title": conversation.title,
        "server": conversation.server_id,
        "model": conversation.model,
        "system_prompt": conversation.system_prompt_id,
        "params": conversation.params,
        "response_format": conversation.response_format,
        "active_leaf": conversation.active_leaf_id,
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "tags": [tag.name for tag in conversation.tags.all()],
        "tools": {name: value for name, value in conversation.tools.items() if name != "allowed"},
        "created": conversation.created,
        "updated": conversation.updated,
    }
