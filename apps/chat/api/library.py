"""Chat over HTTP, beside conversations and answers: presets, search, branches, files, shares."""

import uuid
from datetime import datetime
from typing import IO, Any, Literal, cast

from django.http import HttpRequest, StreamingHttpResponse
from django.urls import reverse
from ninja import Field, File, Router, Schema, Status
from ninja.files import UploadedFile

from apps.chat.conversations import branches, presets, search, services, sharing
from apps.chat.conversations import compare as conversations_compare
from apps.chat.models import Conversation, Message, Preset, Share, SystemPrompt
from apps.chat.prompt import attachments
from apps.chat.prompt.params import Params
from apps.chat.transfer import read, write
from apps.chat.views.transfer import download
from apps.core.api import ApiError, NotFound, Page, get_owned, owner, page
from apps.core.quotas import limited
from apps.servers.models import Server
from apps.servers.services import NoServer, Target

router = Router()


class PresetIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    server: int | None = None
    model: str = Field("", max_length=300)
    system_prompt: int | None = None
    params: Params | None = None


class PresetOut(Schema):
    id: int
    name: str
    server: int | None
    model: str
    system_prompt: int | None
    params: dict[str, Any]


class HitOut(Schema):
    conversation: int
    title: str
    message: int | None
    role: str
    snippet: str


class AttachmentOut(Schema):
    id: int
    name: str
    kind: str
    size: int
    tokens: int | None


class ImportedOut(Schema):
    conversations: int
    messages: int
    known: int


class ShareOut(Schema):
    token: uuid.UUID
    url: str


class EditIn(Schema):
    content: str


class CompareIn(Schema):
    server: int | None = None
    model: str = Field("", max_length=300)
    preset: int | None = None


class StartedOut(Schema):
    id: int
    status: str
    events: str


class EditedOut(Schema):
    question: int
    answer: StartedOut


class RemovedOut(Schema):
    id: int
    messages: int


@router.get("/presets", response=Page[PresetOut])
def list_presets(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    mine = Preset.objects.owned_by(owner(request))
    return page(mine, _preset, limit=limit, after=after)


@router.post("/presets", response={201: PresetOut})
def save_preset(request: HttpRequest, data: PresetIn) -> Any:
    """Create a preset, or update the one with this name."""
    preset = presets.save(
        owner=owner(request),
        name=data.name,
        server=server_of(data.server),
        model=data.model,
        system_prompt=prompt_of(request, data.system_prompt),
        params=data.params.dict(exclude_none=True) if data.params else {},
    )
    return Status(201, _preset(preset))


@router.delete("/presets/{pk}", response={204: None})
def delete_preset(request: HttpRequest, pk: int) -> Any:
    """Delete a preset. Conversations keep their settings."""
    preset_of(request, pk).delete()
    return Status(204, None)


@router.get("/search", response=list[HitOut])
def find(request: HttpRequest, q: str, limit: int = search.LIMIT, together: bool = False) -> Any:
    """Messages and titles with all these words, the newest first."""
    hits = search.find(owner(request), q[:200], limit=max(1, min(limit, 200)))
    return [
        {
            "conversation": hit.conversation,
            "title": hit.title,
            "message": hit.message,
            "role": hit.role,
            "snippet": "".join(piece.text for piece in hit.snippet),
        }
        for hit in (search.together(hits) if together else hits)
    ]


@router.get("/conversations/export")
def export_all(
    request: HttpRequest, format: Literal["json", "jsonl", "md"] = "json"
) -> StreamingHttpResponse:
    """All of one's own, streamed: JSON with every branch, or OpenAI's fine-tuning JSONL."""
    mine = Conversation.objects.owned_by(owner(request)).order_by("pk")
    return download(list(mine.values_list("pk", flat=True)), format)


@router.get("/conversations/{int:pk}/export")
def export_one(
    request: HttpRequest, pk: int, format: Literal["json", "jsonl", "md"] = "json"
) -> StreamingHttpResponse:
    return download([_conversation(request, pk).pk], format)


class SharedOut(ShareOut):
    title: str
    conversation: int
    created: datetime


@router.post("/conversations/import", response={201: ImportedOut})
@limited("readings")
def import_file(request: HttpRequest, file: File[UploadedFile]) -> Any:
    """An export of ChatGPT, of Open WebUI or of this workbench: all of it, or nothing."""
    try:
        result = write.import_file(owner(request), cast(IO[bytes], file))
    except read.BadFile as error:
        detail = f"{error} Nothing was imported."
        raise ApiError(422, "bad_file", detail) from error
    return Status(201, vars(result))


@router.post("/conversations/{int:pk}/shares", response={201: ShareOut})
def share(request: HttpRequest, pk: int, thinking: bool = True) -> Any:
    """A read-only copy for everybody with a login here; `thinking`: with the model's thoughts."""
    made = sharing.share(owner(request), _conversation(request, pk), with_thinking=thinking)
    return Status(201, {"token": made.token, "url": reverse("chat:shared", args=[made.token])})


@router.get("/shares", response=list[SharedOut])
def list_shares(request: HttpRequest) -> Any:
    """List the copies you share, newest first. DELETE one to end it."""
    mine = Share.objects.owned_by(owner(request)).filter(conversation__deleted_at=None)
    return [
        {
            "token": share.token,
            "url": reverse("chat:shared", args=[share.token]),
            "title": share.title,
            "conversation": share.conversation_id,
            "created": share.created,
        }
        for share in mine
    ]


@router.delete("/shares/{uuid:token}", response={204: None})
def unshare(request: HttpRequest, token: uuid.UUID) -> Any:
    deleted, _ = Share.objects.owned_by(owner(request)).filter(token=token).delete()
    if not deleted:
        raise NotFound("share")
    return Status(204, None)


@router.post("/attachments", response={201: AttachmentOut})
def attach(request: HttpRequest, file: File[UploadedFile]) -> Any:
    """Upload text, a PDF or an image. Pass its ID in `attachments` when you ask."""
    try:
        target: Target | None = services.target_of(Conversation())
    except NoServer:
        target = None
    try:
        made = attachments.receive(owner(request), file.name or "", cast(IO[bytes], file), target)
    except attachments.BadAttachment as error:
        status = 413 if isinstance(error, attachments.NoRoom) else 422
        raise ApiError(status, error.code, str(error)) from error
    return Status(201, made)


@router.post("/messages/{pk}/edit", response={202: EditedOut})
def edit_question(request: HttpRequest, pk: int, data: EditIn) -> Any:
    """Edit a question and answer it. The original is kept."""
    question, answer = branches.edit(_message(request, pk), data.content)
    return Status(202, {"question": question.pk, "answer": _started(answer)})


@router.post("/answers/{pk}/continue", response={202: StartedOut})
def continue_answer(request: HttpRequest, pk: int) -> Any:
    """An answer beside this one that begins with its text and goes on from there."""
    answer = get_owned(
        Message.objects.answers().select_related("parent"), request, pk, name="answer"
    )
    return Status(202, _started(branches.go_on(answer)))


@router.post("/answers/{pk}/compare", response={202: StartedOut})
def compare(request: HttpRequest, pk: int, data: CompareIn) -> Any:
    """Another answer to the same question, of another model or under a preset."""
    answer = get_owned(
        Message.objects.answers().select_related("parent"), request, pk, name="answer"
    )
    preset = None if data.preset is None else preset_of(request, data.preset)
    other = conversations_compare.beside(
        answer, server=server_of(data.server), model=data.model, preset=preset
    )
    return Status(202, _started(other))


@router.delete("/messages/{pk}", response=RemovedOut)
def remove_message(request: HttpRequest, pk: int) -> Any:
    """Delete a message and everything after it. `restore` brings it back within 24 hours."""
    removed = branches.remove(_message(request, pk))
    return {"id": removed.root.pk, "messages": removed.messages}


@router.post("/messages/{pk}/restore", response={204: None})
def restore_message(request: HttpRequest, pk: int) -> Any:
    root = Message.objects.removed_by(owner(request)).filter(pk=pk).first()
    if root is None:
        raise NotFound("removed message")
    branches.restore(root)
    return Status(204, None)


def server_of(pk: int | None) -> Server | None:
    if pk is None:
        return None
    server = Server.objects.filter(pk=pk).first()
    if server is None:
        raise NotFound("server")
    return server


def prompt_of(request: HttpRequest, pk: int | None) -> SystemPrompt | None:
    if pk is None:
        return None
    return get_owned(SystemPrompt, request, pk)


def preset_of(request: HttpRequest, pk: int) -> Preset:
    return get_owned(Preset.objects.select_related("server", "system_prompt"), request, pk)


def _conversation(request: HttpRequest, pk: int) -> Conversation:
    return get_owned(Conversation, request, pk)


def _answer(request: HttpRequest, pk: int) -> Message:
    answers = Message.objects.answers().select_related("parent")
    return get_owned(answers, request, pk, name="answer")


def _message(request: HttpRequest, pk: int) -> Message:
    return get_owned(Message, request, pk)


def _started(answer: Message) -> dict[str, Any]:
    events = f"/api/v1/answers/{answer.pk}/events"
    return {"id": answer.pk, "status": answer.status, "events": events}


def _preset(preset: Preset) -> dict[str, Any]:
    return {
        "id": preset.pk,
        "name": preset.name,
        "server": preset.server_id,
        "model": preset.model,
        "system_prompt": preset.system_prompt_id,
        "params": preset.params,
    }
