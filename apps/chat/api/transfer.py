"""Search, export, import, shares and attachments over HTTP."""

import uuid
from datetime import datetime
from typing import IO, Any, Literal, cast

from django.http import HttpRequest, StreamingHttpResponse
from django.urls import reverse
from ninja import File, Router, Schema, Status
from ninja.files import UploadedFile

from apps.chat.attachments import receive
from apps.chat.conversation_list import search
from apps.chat.conversations import services, sharing
from apps.chat.lookups import get_conversation, get_kept
from apps.chat.models import Conversation, Share
from apps.chat.transfer import read, write
from apps.chat.transfer.download import download, download_all
from apps.core.api import ApiError, NotFound, owner
from apps.core.quotas import limited
from apps.servers.services import NoServer, Target

router = Router()
Format = Literal["json", "jsonl", "md"]


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
    """Conversations that were imported before, and skipped."""
    documents: int


class ShareOut(Schema):
    token: uuid.UUID
    url: str

    @staticmethod
    def resolve_url(share: Share) -> str:
        return reverse("chat:shared", args=[share.token])


class SharedOut(ShareOut):
    title: str
    conversation: int
    created: datetime

    @staticmethod
    def resolve_conversation(share: Share) -> int:
        return share.conversation_id


@router.get("/search", response=list[HitOut])
def find(request: HttpRequest, q: str, limit: int = search.LIMIT, together: bool = False) -> Any:
    """Find messages and titles with all these words, newest first. `together`: one hit a chat."""
    hits = search.find(owner(request), q[:200], limit=max(1, min(limit, 200)))
    return [
        HitOut(
            conversation=hit.conversation,
            title=hit.title,
            message=hit.message,
            role=hit.role,
            snippet="".join(part.text for part in hit.snippet),
        )
        for hit in (search.group_by_conversation(hits) if together else hits)
    ]


@router.get("/conversations/export")
def export_all(request: HttpRequest, format: Format = "json") -> StreamingHttpResponse:
    """Stream all your conversations: JSON with every branch, or OpenAI's fine-tuning JSONL.

    JSON also has your projects and the text of their documents.
    """
    return download_all(owner(request), format)


@router.get("/conversations/{int:pk}/export")
def export_one(request: HttpRequest, pk: int, format: Format = "json") -> StreamingHttpResponse:
    """Stream one conversation in the same formats."""
    return download([get_kept(request, pk).pk], format)


@router.post("/conversations/import", response={201: ImportedOut})
@limited("readings")
def import_file(request: HttpRequest, file: File[UploadedFile]) -> Any:
    """Import an export of ChatGPT, Open WebUI or Workbench: all of it, or nothing.

    An export of Workbench brings its projects and documents back as text, which is embedded again.
    Files and images, presets, and the sources of citations do not come back.
    """
    try:
        return Status(201, write.import_file(owner(request), cast(IO[bytes], file)))
    except read.BadFile as error:
        raise ApiError(422, "bad_file", f"{error} Nothing was imported.") from error


@router.post("/conversations/{int:pk}/shares", response={201: ShareOut})
def share(request: HttpRequest, pk: int, thinking: bool = True) -> Any:
    """Share a read-only copy with everyone who has an account. `thinking`: include reasoning."""
    conversation = get_conversation(request, pk)
    return Status(201, sharing.share(owner(request), conversation, with_thinking=thinking))


@router.get("/shares", response=list[SharedOut])
def list_shares(request: HttpRequest) -> Any:
    """List the copies you share, newest first. DELETE one to stop sharing it."""
    return Share.objects.owned_by(owner(request)).filter(conversation__deleted_at=None)


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
    attachment = receive.receive(owner(request), file.name or "", cast(IO[bytes], file), target)
    return Status(201, attachment)
