"""Attachments: receiving files, attaching them to a message, deleting them.

A file lies under a random name in a folder that only Workbench may read, and is shown to its owner
alone. In the prompt it stands before the question it came with, and stays there, so the server
processes it once.
"""

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import IO

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Sum

from apps.chat.attachments.file_text import BadAttachment, extract_text, kind_of
from apps.chat.attachments.image_tokens import count_images
from apps.chat.models import Attachment, AttachmentKind, Conversation, Message
from apps.chat.prompt.token_estimate import TOKENS_PER_BYTE, text_bytes
from apps.core import quotas
from apps.llm.errors import LLMError
from apps.servers import services as llm

MB = 1024**2
MAX_BYTES = 20 * MB
UNSENT_MB = 200  # of one person; in all as many as WORKBENCH_ATTACHMENTS_MB says
MAX_PER_MESSAGE = 10
COUNT_SECONDS = 2.0
COPIED_FIELDS = ("name", "kind", "media_type", "size", "text", "tokens")


class NoRoom(BadAttachment):
    """The files of one person reach their size limit."""

    code = "no_room"
    status = 413


def receive(owner: User, name: str, file: IO[bytes], target: llm.Target | None) -> Attachment:
    """Store a file that belongs to no message yet.

    Args:
        target: the model whose tokens are counted; None: estimate.

    Raises:
        BadAttachment: it cannot be read.
        NoRoom: its owner has too many bytes of files.
        LimitReached: its owner has too many unsent files, or uploads at once.
    """
    _check_count(owner)
    with quotas.hold(owner.pk, "readings"):
        return _store(owner, name, file, target)


def _store(owner: User, name: str, file: IO[bytes], target: llm.Target | None) -> Attachment:
    name = " ".join(name.split())[:255] or "file"
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise BadAttachment(f"“{name}” is larger than {MAX_BYTES // 1024**2} MB.")
    if not data:
        raise BadAttachment(f"“{name}” is empty.")
    _check_room(owner, name, len(data))
    kind, media_type = kind_of(data)
    attachment = Attachment(
        owner=owner, name=name, kind=kind, media_type=media_type, size=len(data)
    )
    _write(attachment.path, data)
    try:
        attachment.text = extract_text(attachment, data)
        if attachment.text:
            attachment.tokens = _count_tokens(attachment.text, target)
        else:
            count_images([attachment], target)
        with quotas.counting(owner):
            _check_count(owner)
            _check_room(owner, name, len(data))
            attachment.save()
    except BaseException:
        attachment.path.unlink(missing_ok=True)
        raise
    return attachment


def _check_count(owner: User) -> None:
    quotas.check("attachments", Attachment.objects.owned_by(owner).filter(message=None).count())


def _check_room(owner: User, name: str, size: int) -> None:
    """Raise NoRoom if the files of an owner would exceed a limit with one more."""
    mine = Attachment.objects.owned_by(owner)
    total, limit = mine.aggregate(size=Sum("size"))["size"] or 0, settings.ATTACHMENTS_MB
    unsent = mine.filter(message=None).aggregate(size=Sum("size"))["size"] or 0
    if unsent + size > UNSENT_MB * MB:
        raise NoRoom(
            f"“{name}” was not kept: your unsent files have {unsent // MB} MB already, and the "
            f"limit is {UNSENT_MB} MB. Send or remove some."
        )
    if total + size > limit * MB:
        raise NoRoom(
            f"“{name}” was not kept: your files have {total // MB} MB already, and the limit is "
            f"{limit} MB. Delete chats that have files."
        )


def attach(owner_id: int, ids: Sequence[str], message: Message) -> None:
    """Attach uploaded files to a message.

    Raises:
        BadAttachment: too many, or one that is not there: sent before, removed, or not theirs.
    """
    numbers = list(dict.fromkeys(int(pk) for pk in ids if pk.isdecimal() and len(pk) < 19))
    if len(numbers) > MAX_PER_MESSAGE:
        raise BadAttachment(
            f"The message has {len(numbers)} files. The limit is {MAX_PER_MESSAGE}. Remove some."
        )
    if len(ids) and not numbers:
        raise BadAttachment("`attachments` are the ids of files that were uploaded before.")
    if numbers:
        unsent = Attachment.objects.filter(owner_id=owner_id, message=None, pk__in=numbers)
        there = set(unsent.values_list("pk", flat=True))
        if missing := [pk for pk in numbers if pk not in there]:
            raise BadAttachment(
                f"File {missing[0]} is not there: it was sent before, or removed. Attach it again."
            )
        unsent.update(message=message)


def copy(source: Message, target: Message) -> None:
    """Copy the files of a question to its edited version. The bytes are linked, not copied."""
    for attachment in source.attachments.all():
        path = attachment.path
        copied = Attachment(
            owner_id=attachment.owner_id,
            message=target,
            **{name: getattr(attachment, name) for name in COPIED_FIELDS},
        )
        os.link(path, copied.path)
        copied.save()


def delete(attachment: Attachment) -> None:
    attachment.path.unlink(missing_ok=True)
    attachment.delete()


def paths_of(conversation: Conversation) -> list[Path]:
    """Return where the files of a conversation lie."""
    return [one.path for one in Attachment.objects.filter(message__conversation=conversation)]


def delete_stale(before: datetime) -> int:
    """Delete files that were never sent or have no message; return how many had none."""
    for unsent in Attachment.objects.filter(message=None, created__lt=before):
        delete(unsent)
    folder = Path(settings.DATA_DIR) / "attachments"
    deleted = 0
    if folder.exists():
        known = {str(name) for name in Attachment.objects.values_list("stored_as", flat=True)}
        for path in folder.iterdir():
            if path.name not in known and path.stat().st_mtime < before.timestamp():
                path.unlink()
                deleted += 1
    return deleted


def _count_tokens(text: str, target: llm.Target | None) -> int:
    """Return tokens as the server counts them; an estimate if it does not, or is slow."""
    exact = async_to_sync(_count_at_server)(text, target) if target is not None else None
    return exact or round(text_bytes(text) * TOKENS_PER_BYTE)


async def _count_at_server(text: str, target: llm.Target) -> int | None:
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            return await target.client.count_tokens(
                target.model, [{"role": "user", "content": text}]
            )
    except (LLMError, TimeoutError):
        return None


def check_vision(message: Message, target: llm.Target) -> None:
    """Raise BadAttachment if a message has an image and its model is known to support none."""
    if target.server.facts_of(target.model).vision is not False:
        return
    image = message.attachments.filter(kind=AttachmentKind.IMAGE).first()
    if image is not None:
        raise BadAttachment(
            f"{target.model} does not support images. Remove “{image.name}”, or choose a model "
            "that does."
        )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
