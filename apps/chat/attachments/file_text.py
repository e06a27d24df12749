"""The kind of an attachment, and its text. The bytes decide, not the name."""

from apps.chat.attachments import pdf_text
from apps.chat.errors import ChatError
from apps.chat.models import Attachment, AttachmentKind
from apps.core import sandbox

MAX_CHARACTERS = 400_000
PDF = b"%PDF-"
IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


class BadAttachment(ChatError):
    code = "bad_attachment"


def kind_of(data: bytes) -> tuple[AttachmentKind, str]:
    """Return kind and media type by the bytes. Anything unknown is text, or is refused as such."""
    for start, media_type in IMAGES:
        if data.startswith(start):
            return AttachmentKind.IMAGE, media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return AttachmentKind.IMAGE, "image/webp"
    if data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(PDF):
        return AttachmentKind.PDF, "application/pdf"
    return AttachmentKind.TEXT, "text/plain; charset=utf-8"


def extract_text(attachment: Attachment, data: bytes) -> str:
    """Return the text of an attachment; "" for an image.

    Raises:
        BadAttachment: it has none, has too much, or cannot be read.
    """
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
            f"“{attachment.name}” has {len(text):,} characters. The limit is {MAX_CHARACTERS:,}. "
            "Attach part of it."
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
            "apps.chat.attachments.pdf_text", str(attachment.path), limits=pdf_text.LIMITS
        )
    except sandbox.Exceeded as error:
        raise BadAttachment(
            f"“{attachment.name}” takes too long to process, or is too long. Attach part of it."
        ) from error
    except sandbox.Busy as error:
        raise BadAttachment(str(error)) from error
    except sandbox.Failed as error:
        if error.code == pdf_text.ENCRYPTED:
            why = "is password-protected. Attach an unprotected copy."
        else:
            why = "could not be read. The PDF may be damaged."
        raise BadAttachment(f"“{attachment.name}” {why}") from error
    return text.decode("utf-8", "replace")
