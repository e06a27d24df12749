"""Files that go with a question: texts and PDFs as text, pictures as they are.

What a file is, its bytes say, not its name. It lies under a name of ours in a folder that only the
workbench may read, and is shown to its owner alone. In the prompt it stands before the question it
came with, and stays there, so the server reads it once.
"""

import asyncio
import base64
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Sum

from apps.chat.conversations.errors import ChatError
from apps.chat.models import Attachment, AttachmentKind, Message
from apps.chat.prompt import pdf_text, pictures
from apps.chat.prompt.context import TOKENS_PER_BYTE
from apps.core import quotas, sandbox
from apps.llm.errors import LLMError
from apps.servers import services as llm

MB = 1024**2
MAX_BYTES = 20 * MB
UNSENT_MB = 200  # of one person; in all as many as WORKBENCH_ATTACHMENTS_MB says
MAX_CHARACTERS = 400_000
MAX_AT_ONCE = 10
COUNT_SECONDS = 2.0
PDF = b"%PDF-"
IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


class BadAttachment(ChatError):
    code = "bad_attachment"


class NoRoom(BadAttachment):
    """One person's files are as large together as they may be."""

    status = 413
    code = "no_room"


@dataclass(frozen=True)
class Sent:
    """What the model is given of the files of some messages."""

    texts: dict[int, str] = field(default_factory=dict)
    """By message: what stands before its text."""
    images: dict[str, str] = field(default_factory=dict)
    """By the mark that stands for it in a text: the picture as a data URL."""
    image_tokens: dict[int, int] = field(default_factory=dict)
    """By message: what its pictures come to, as far as that was counted."""


def receive(owner: User, name: str, file: IO[bytes], target: llm.Target | None) -> Attachment:
    """Takes a file in. It belongs to no message yet.

    Args:
        target: whose tokens are counted; without one they are estimated.

    Raises:
        BadAttachment: it cannot be read. The message says why.
        NoRoom: they have too many bytes of files.
        LimitReached
    """
    unsent = Attachment.objects.owned_by(owner).filter(message=None)
    quotas.check("attachments", unsent.count())
    with quotas.hold(owner.pk, "readings"):
        return _received(owner, name, file, target)


def _received(owner: User, name: str, file: IO[bytes], target: llm.Target | None) -> Attachment:
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
        attachment.text = _text(attachment, data)
        if attachment.text:
            attachment.tokens = count(attachment.text, target)
        else:
            count_pictures([attachment], target)
        attachment.save()
    except BaseException:
        attachment.path.unlink(missing_ok=True)
        raise
    return attachment


def _check_room(owner: User, name: str, size: int) -> None:
    """Raises NoRoom where a file would be too much beside the others of its owner."""
    mine = Attachment.objects.owned_by(owner)
    all_of, most = mine.aggregate(size=Sum("size"))["size"] or 0, settings.ATTACHMENTS_MB
    unsent = mine.filter(message=None).aggregate(size=Sum("size"))["size"] or 0
    if unsent + size > UNSENT_MB * MB:
        raise NoRoom(
            f"“{name}” was not kept: your unsent files have {unsent // MB} MB already, and the "
            f"limit is {UNSENT_MB} MB. Send or remove some."
        )
    if all_of + size > most * MB:
        raise NoRoom(
            f"“{name}” was not kept: your files have {all_of // MB} MB already, and the limit is "
            f"{most} MB. Delete chats that have files."
        )


def kind_of(data: bytes) -> tuple[AttachmentKind, str]:
    """What bytes are; what is nothing else is text, or is refused when it is read as that."""
    for start, media_type in IMAGES:
        if data.startswith(start):
            return AttachmentKind.IMAGE, media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return AttachmentKind.IMAGE, "image/webp"
    if data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(PDF):
        return AttachmentKind.PDF, "application/pdf"
    return AttachmentKind.TEXT, "text/plain; charset=utf-8"


def count(text: str, target: llm.Target | None) -> int:
    """Tokens as the server counts them; an estimate where it does not, or not soon."""
    exact = async_to_sync(_count)(text, target) if target is not None else None
    return exact or round(len(text.encode()) * TOKENS_PER_BYTE)


async def _count(text: str, target: llm.Target) -> int | None:
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            return await target.client.count_tokens(
                target.model, [{"role": "user", "content": text}]
            )
    except (LLMError, TimeoutError):
        return None


def count_pictures(found: Iterable[Attachment], target: llm.Target | None) -> None:
    """Gives each picture its tokens with this model, or None; saves nothing."""
    images = [one for one in found if one.kind == AttachmentKind.IMAGE]
    urls = [data_url(image) for image in images]
    costs = async_to_sync(pictures.count)(urls, target) if target else [None] * len(images)
    for image, tokens in zip(images, costs, strict=True):
        image.tokens = tokens


def claim(owner_id: int, ids: Sequence[str], message: Message) -> None:
    """Files that were taken in go with this message. What belongs to another one stays there.

    Raises:
        BadAttachment: too many, or one that is not there: sent before, removed, or another's.
    """
    numbers = list(dict.fromkeys(int(pk) for pk in ids if pk.isdecimal() and len(pk) < 19))
    if len(numbers) > MAX_AT_ONCE:
        raise BadAttachment(
            f"The message has {len(numbers)} files. The limit is {MAX_AT_ONCE}. Remove some."
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


def check_seen(message: Message, target: llm.Target) -> None:
    """Raises BadAttachment where a message has a picture and its model is known to see none."""
    if target.server.facts_of(target.model).vision is not False:
        return
    picture = message.attachments.filter(kind=AttachmentKind.IMAGE).first()
    if picture is not None:
        raise BadAttachment(
            f"{target.model} does not see pictures: remove “{picture.name}” or choose a model "
            "that does."
        )


def copy(source: Message, target: Message) -> None:
    """The files of a question go with its edited version too."""
    for attachment in source.attachments.all():
        path = attachment.path
        attachment.pk = None
        attachment._state.adding = True
        attachment.message = target
        attachment.stored_as = Attachment._meta.get_field("stored_as").get_default()
        os.link(path, attachment.path)
        attachment.save()


def forget(attachment: Attachment) -> None:
    attachment.path.unlink(missing_ok=True)
    attachment.delete()


def sent_with(messages: Iterable[Message]) -> Sent:
    """What the model is given of the files of these messages, byte-identical every time."""
    branch = {message.pk: message for message in messages}
    conversation = next((m.conversation_id for m in branch.values() if m.pk), 0)
    texts: dict[int, list[str]] = defaultdict(list)
    images: dict[str, str] = {}
    image_tokens: dict[int, int] = defaultdict(int)
    # By conversation: its messages would be a thousand values in the query.
    for attachment in Attachment.objects.filter(message__conversation=conversation):
        assert attachment.message_id is not None
        if attachment.message_id not in branch:
            continue
        if attachment.kind == AttachmentKind.IMAGE:
            mark = f"\0image:{attachment.stored_as}\0"
            images[mark] = data_url(attachment)
            texts[attachment.message_id].append(mark)
            image_tokens[attachment.message_id] += attachment.tokens or 0
        else:
            name = attachment.name.replace('"', "'")
            texts[attachment.message_id].append(
                f'<file name="{name}">\n{attachment.text}\n</file>\n\n'
            )
    return Sent({pk: "".join(parts) for pk, parts in texts.items()}, images, image_tokens)


def data_url(attachment: Attachment) -> str:
    data = base64.b64encode(attachment.path.read_bytes()).decode()
    return f"data:{attachment.media_type};base64,{data}"


def sweep(before: datetime) -> int:
    """Deletes files that were never sent, and those whose message is gone; how many."""
    for unsent in Attachment.objects.filter(message=None, created__lt=before):
        forget(unsent)
    folder = Path(settings.DATA_DIR) / "attachments"
    swept = 0
    if folder.exists():
        known = {str(name) for name in Attachment.objects.values_list("stored_as", flat=True)}
        for path in folder.iterdir():
            if path.name not in known and path.stat().st_mtime < before.timestamp():
                path.unlink()
                swept += 1
    return swept


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _text(attachment: Attachment, data: bytes) -> str:
    if attachment.kind == AttachmentKind.IMAGE:
        return ""
    if attachment.kind == AttachmentKind.PDF:
        text = _pdf_text(attachment)
    else:
        text = _decoded(attachment.name, data)
    text = text.replace("\0", "").replace("\r\n", "\n").strip()
    if not text:
        raise BadAttachment(f"“{attachment.name}” has no text. It may contain only images.")
    if len(text) > MAX_CHARACTERS:
        raise BadAttachment(
            f"“{attachment.name}” has {len(text):,} characters; {MAX_CHARACTERS:,} are the most. "
            "Attach a part of it."
        )
    return text


def _decoded(name: str, data: bytes) -> str:
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        if b"\0" in data:
            raise UnicodeDecodeError("utf-8", data, 0, 1, "NUL")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadAttachment(
            f"“{name}” is not a supported file. Attach UTF-8 text, a PDF or an image "
            "(PNG, JPEG, WebP, GIF)."
        ) from error


def _pdf_text(attachment: Attachment) -> str:
    try:
        text = sandbox.output(
            "apps.chat.prompt.pdf_text", str(attachment.path), limits=pdf_text.LIMITS
        )
    except sandbox.Exceeded as error:
        raise BadAttachment(
            f"“{attachment.name}” takes too long to read or has too much text. Attach a part of it."
        ) from error
    except sandbox.Busy as error:
        raise BadAttachment(str(error)) from error
    except sandbox.Failed as error:
        if error.code == pdf_text.ENCRYPTED:
            why = "needs a password. Attach a copy without one."
        else:
            why = "cannot be read as a PDF: it may be damaged."
        raise BadAttachment(f"“{attachment.name}” {why}") from error
    return text.decode("utf-8", "replace")
