"""The attachments of messages as the prompt has them."""

import base64
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from apps.chat.models import Attachment, AttachmentKind, Message


@dataclass(frozen=True)
class PromptFiles:
    """The files of some messages, as the model gets them."""

    texts: Mapping[int, str] = field(default_factory=dict)
    """By message: what stands before its text."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Data URLs of images by the mark that stands for each in a text."""
    image_tokens: Mapping[int, int] = field(default_factory=dict)
    """By message: tokens of its images, if they were counted."""


def files_of(branch: Iterable[Message]) -> PromptFiles:
    """Return the files of the messages of one conversation, byte-identical every time."""
    ids = {message.pk: message for message in branch}
    conversation = next((m.conversation_id for m in ids.values() if m.pk), 0)
    if not conversation:
        return PromptFiles()
    texts: dict[int, list[str]] = defaultdict(list)
    images: dict[str, str] = {}
    image_tokens: dict[int, int] = defaultdict(int)
    # The conversation is one parameter; its messages would be a thousand.
    for attachment in Attachment.objects.filter(message__conversation=conversation):
        message_id = attachment.message_id
        if message_id is None or message_id not in ids:
            continue
        if attachment.kind == AttachmentKind.IMAGE:
            mark = f"\0image:{attachment.stored_as}\0"
            images[mark] = data_url(attachment)
            texts[message_id].append(mark)
            image_tokens[message_id] += attachment.tokens or 0
        else:
            name = attachment.name.replace('"', "'")
            texts[message_id].append(f'<file name="{name}">\n{attachment.text}\n</file>\n\n')
    return PromptFiles({pk: "".join(parts) for pk, parts in texts.items()}, images, image_tokens)


def data_url(attachment: Attachment) -> str:
    """Return an image as a URL that holds its bytes."""
    data = base64.b64encode(attachment.path.read_bytes()).decode()
    return f"data:{attachment.media_type};base64,{data}"
