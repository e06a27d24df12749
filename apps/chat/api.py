"""Chat over HTTP."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest, HttpResponseBase
from ninja import Field, Router, Schema, Status

from apps.chat import generation, library, library_api, services, sse
from apps.chat.library_api import preset_of, prompt_of, server_of
from apps.chat.models import (
    TITLE_LENGTH,
    Conversation,
    Message,
    Preset,
    Role,
    SystemPrompt,
    ToolCall,
)
from apps.chat.params import Params
from apps.chat.tools import calling, deciding
from apps.chat.tools import settings as tool_settings
from apps.core import tools
from apps.core.api import ApiError, Page, not_found, owner, page
from apps.core.tools import Approval

router = Router(tags=["chat"])
router.add_router("", library_api.router)


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


class ToolCallOut(Schema):
    id: int
    call_id: str
    round: int
    name: str
    arguments: str
    at: int
    state: str
    result: str


class ConversationPatch(Schema):
    title: str | None = Field(None, min_length=1, max_length=TITLE_LENGTH)
    server: int | None = None
    model: str | None = Field(None, max_length=300)
    system_prompt: int | None = None
    params: Params | None = None
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
    active_leaf: int | None
    pinned: bool
    archived: bool
    tags: list[str]
    tools: dict[str, Any]
    created: datetime
    updated: datetime


class UsageOut(Schema):
    prompt_tokens: int
    cached_tokens: int | None
    completion_tokens: int | None
    ttft_ms: float | None
    tokens_per_second: float | None


class ErrorOut(Schema):
    code: str
    detail: str


class MessageOut(Schema):
    id: int
    parent: int | None
    role: str
    content: str
    reasoning: str
    status: str
    error: ErrorOut | None
    finish_reason: str
    model: str
    usage: UsageOut | None
    tool_calls: list[ToolCallOut]
    kept_from: int | None
    created: datetime
    finished: datetime | None


class ConversationWithMessages(ConversationOut):
    messages: list[MessageOut]


class MessageIn(Schema):
    content: str
    parent: int | None = None
    params: Params | None = None
    response_format: dict[str, Any] | None = None
    tools: list[str | ToolUse] | None = None
    attachments: list[int] = []


class AnswerStarted(Schema):
    id: int
    status: str


class TurnOut(Schema):
    question: MessageOut
    answer: AnswerStarted
    events: str


class RegeneratedOut(Schema):
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
    """A changed text is a new version; old conversations keep theirs."""
    prompt = services.save_system_prompt(owner=owner(request), name=data.name, text=data.text)
    return Status(201, _system_prompt(prompt))


@router.get("/conversations", response=Page[ConversationOut])
def list_conversations(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    """Newest first."""
    conversations = Conversation.objects.owned_by(owner(request)).prefetch_related("tags")
    return page(conversations, _conversation, limit=limit, after=after, newest_first=True)


@router.post("/conversations", response={201: ConversationOut})
def open_conversation(request: HttpRequest, data: ConversationIn) -> Any:
    """With the settings of a preset, where one is named, under those that are given."""
    preset = Preset() if data.preset is None else preset_of(request, data.preset)
    conversation = services.open_conversation(
        owner=owner(request),
        title=data.title,
        server=server_of(data.server) or preset.server,
        model=data.model or preset.model,
        system_prompt=prompt_of(request, data.system_prompt) or preset.system_prompt,
        params=preset.params | _given(data.params),
        tools=None if data.tools is None else _checked(data.tools.dict()),
    )
    return Status(201, _conversation(conversation))


@router.get("/conversations/{int:pk}", response=ConversationWithMessages)
def get_conversation(request: HttpRequest, pk: int, tree: bool = False) -> Any:
    """With the messages of the active branch, or with all of them."""
    conversation = _get(request, pk)
    if tree:
        messages = list(conversation.messages.prefetch_related("tool_calls"))
        generation.settle(messages)
    else:
        messages = [shown.message for shown in services.active_branch(conversation)]
    return _conversation(conversation) | {"messages": [_message(m) for m in messages]}


@router.patch("/conversations/{int:pk}", response=ConversationOut)
def change_conversation(request: HttpRequest, pk: int, data: ConversationPatch) -> Any:
    conversation = _get(request, pk)
    given = data.dict(exclude_unset=True)
    if "server" in given:
        conversation.server = server_of(given["server"])
    if "system_prompt" in given:
        conversation.system_prompt = prompt_of(request, given["system_prompt"])
    if "params" in given:
        conversation.params = _given(data.params)
    if data.tools is not None:
        conversation.tools = _checked(data.tools.dict())
    for name in ("title", "model", "pinned", "archived"):
        if given.get(name) is not None:
            setattr(conversation, name, given[name])
    if given.get("tags") is not None:
        try:
            library.set_tags(conversation, library.tag_names(",".join(given["tags"])))
        except library.BadTags as error:
            raise ApiError(422, error.code, str(error)) from error
    conversation.save()
    if given.get("active_leaf") is not None:
        message = conversation.messages.filter(pk=given["active_leaf"]).first()
        if message is None:
            raise not_found("message")
        services.show_branch(message)
        conversation.refresh_from_db()
    return _conversation(conversation)


@router.delete("/conversations/{int:pk}", response={204: None})
def delete_conversation(request: HttpRequest, pk: int) -> Any:
    services.delete(_get(request, pk))
    return Status(204, None)


@router.post("/conversations/{pk}/messages", response={202: TurnOut})
def ask(request: HttpRequest, pk: int, data: MessageIn) -> Any:
    """Starts an answer. Follow it at `events`, or look at it again later.

    With `Accept: text/event-stream` the events come at once, in this response: first `turn`, with
    what the JSON says, then what `events` would give. After a break go on there.
    """
    conversation = _get(request, pk)
    parent = None
    if data.parent is not None:
        parent = conversation.messages.filter(pk=data.parent).first()
        if parent is None:
            raise not_found("message")
    asked_with: dict[str, Any] = {"params": _given(data.params)}
    if data.response_format is not None:
        asked_with["response_format"] = data.response_format
    if data.tools is not None:
        asked_with["tools"] = _tools_of_one_answer(conversation, data.tools)
    try:
        question, answer = services.ask(
            conversation,
            data.content,
            parent=parent,
            request=asked_with,
            files=[str(pk) for pk in data.attachments],
        )
    except services.StillAnswering as error:
        raise ApiError(409, error.code, str(error)) from error
    except services.ChatError as error:
        raise ApiError(422, error.code, str(error)) from error
    turn = {"question": _message(question), **_started(answer)}
    if sse.is_wanted(request):
        return sse.response(answer, turn=TurnOut.model_validate(turn).model_dump(mode="json"))
    return Status(202, turn)


@router.get("/answers/{pk}", response=MessageOut)
def get_answer(request: HttpRequest, pk: int) -> Any:
    """While it is being written: with the text so far."""
    return _message(_answer(request, pk), live=True)


@router.get("/answers/{pk}/events")
def answer_events(request: HttpRequest, pk: int, after: str | None = None) -> HttpResponseBase:
    """Server-sent events: a snapshot or what came after a position, then as it is written.

    The position is the `id` of an event, as `?after=` or as the header `Last-Event-ID`.
    """
    position = sse.position_of(request.headers.get("Last-Event-ID") or after)
    return sse.response(_answer(request, pk), position)


@router.post("/answers/{pk}/stop", response=MessageOut)
def stop_answer(request: HttpRequest, pk: int) -> Any:
    """Stops it at the model server and keeps its text."""
    return _message(services.stop(_answer(request, pk)), live=True)


@router.get("/tools", response=list[ToolOut])
def list_tools(request: HttpRequest) -> Any:
    """What a model may call here; `approval` is when it runs unless somebody says otherwise."""
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "parameters": tool.parameters,
            "approval": tool.default,
        }
        for tool in tools.available()
    ]


@router.post("/answers/{pk}/calls/{call}/approve", response=ToolCallOut)
def approve_call(request: HttpRequest, pk: int, call: int, always: bool = False) -> Any:
    """Lets a call run that waits; `always`: this tool need not ask again in the conversation."""
    return _decide(request, pk, call, run=True, always=always)


@router.post("/answers/{pk}/calls/{call}/refuse", response=ToolCallOut)
def refuse_call(request: HttpRequest, pk: int, call: int) -> Any:
    """The model is told that it was refused, and goes on."""
    return _decide(request, pk, call, run=False)


@router.post("/answers/{pk}/regenerate", response={202: RegeneratedOut})
def regenerate_answer(request: HttpRequest, pk: int) -> Any:
    """Another answer to the same question, beside this one."""
    try:
        again = services.answer_again(_answer(request, pk))
    except services.StillAnswering as error:
        raise ApiError(409, error.code, str(error)) from error
    return Status(202, _started(again))


def _get(request: HttpRequest, pk: int) -> Conversation:
    conversation = Conversation.objects.owned_by(owner(request)).filter(pk=pk).first()
    if conversation is None:
        raise not_found("conversation")
    return conversation


def _answer(request: HttpRequest, pk: int) -> Message:
    """Settled: what it says of its status is true."""
    answer = Message.objects.owned_by(owner(request)).answers().filter(pk=pk).first()
    if answer is None:
        raise not_found("answer")
    generation.settle([answer])
    return answer


def _decide(request: HttpRequest, pk: int, call: int, *, run: bool, always: bool = False) -> Any:
    mine = ToolCall.objects.owned_by(owner(request)).select_related("answer")
    found = mine.filter(pk=call, answer=pk).first()
    if found is None:
        raise not_found("call")
    try:
        return calling.described(deciding.decide(found, run=run, always=always))
    except deciding.NotWaiting as error:
        raise ApiError(409, error.code, str(error)) from error


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    try:
        return tool_settings.checked(given)
    except tool_settings.BadTools as error:
        raise ApiError(422, error.code, str(error)) from error


def _tools_of_one_answer(conversation: Conversation, wanted: list[str | ToolUse]) -> dict[str, Any]:
    use = {
        tool if isinstance(tool, str) else tool.name: None
        if isinstance(tool, str)
        else tool.approval
        for tool in wanted
    }
    try:
        return tool_settings.only(conversation.tools, use)
    except tool_settings.BadTools as error:
        raise ApiError(422, error.code, str(error)) from error


def _given(params: Params | None) -> dict[str, Any]:
    return params.dict(exclude_none=True) if params else {}


def _started(answer: Message) -> dict[str, Any]:
    return {
        "answer": {"id": answer.pk, "status": answer.status},
        "events": f"/api/v1/answers/{answer.pk}/events",
    }


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
        "active_leaf": conversation.active_leaf_id,
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "tags": [tag.name for tag in conversation.tags.all()],
        "tools": conversation.tools,
        "created": conversation.created,
        "updated": conversation.updated,
    }


def _message(message: Message, *, live: bool = False) -> dict[str, Any]:
    status, content, reasoning = str(message.status), message.content, message.reasoning
    if live and not message.is_finished:
        so_far = generation.so_far(message)
        status, content, reasoning = so_far.status, so_far.text, so_far.reasoning
    error = None
    if message.error_code:
        error = {"code": message.error_code, "detail": message.error_detail}
    return {
        "id": message.pk,
        "parent": message.parent_id,
        "role": message.role,
        "content": content,
        "reasoning": reasoning,
        "status": status,
        "error": error,
        "finish_reason": message.finish_reason,
        "model": message.model,
        "usage": message.usage if message.role == Role.ASSISTANT else None,
        "tool_calls": _calls(message),
        "kept_from": message.kept_from,
        "created": message.created,
        "finished": message.finished,
    }


def _calls(message: Message) -> list[dict[str, Any]]:
    if message.role != Role.ASSISTANT:
        return []
    return [calling.described(call) for call in message.tool_calls.all()]
