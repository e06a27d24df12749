"""Writes imported conversations to the database: all of a file, or nothing.

They are written in batches, marked as deleted, and appear together at the end. If the process dies,
they are purged a day later like everything else that was deleted. Projects, which come before them,
are written at once and deleted again if a conversation is refused.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import IO

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.chat.answering.titles import first_line
from apps.chat.conversation_list import library
from apps.chat.models import TITLE_LENGTH, Conversation, Message, Status, SystemPrompt, ToolCall
from apps.chat.presets.system_prompts import save_system_prompt
from apps.chat.transfer import read_sandboxed
from apps.chat.transfer.normalise import ImportedCall, ImportedConversation, ImportedMessage
from apps.chat.transfer.write_projects import ProjectImport
from apps.core.text.storable import to_storable

BATCH_SIZE = 100
BATCH_CHARACTERS = 8_000_000


@dataclass(frozen=True)
class Result:
    conversations: int
    messages: int
    known: int
    """Number that were imported before, and skipped."""
    documents: int = 0


def import_file(owner: User, file: IO[bytes]) -> Result:
    """Import an export file.

    Raises:
        BadFile: nothing was imported.
    """
    marked_at = timezone.now()
    known = set(
        Conversation.objects.owned_by(owner).exclude(source="").values_list("source", flat=True)
    )
    conversations = messages = skipped = 0
    written: list[int] = []
    found = read_sandboxed.read_items(file)
    projects = ProjectImport(owner)
    chats = projects.write_from(found)
    try:
        while batch := _next_batch(chats):
            new = []
            for item in batch:
                if item.source and item.source in known:
                    skipped += 1
                else:
                    known.add(item.source)
                    new.append(item)
            written.extend(_write(projects, new, marked_at))
            conversations += len(new)
            messages += sum(len(item.messages) for item in new)
    except BaseException:
        found.close()  # the process that reads it
        Conversation.objects.filter(pk__in=written).delete()
        projects.undo()
        raise
    projects.finish()
    Conversation.objects.filter(owner=owner, deleted_at=marked_at).update(deleted_at=None)
    return Result(conversations, messages, skipped, len(projects.documents))


def _next_batch(found: Iterator[ImportedConversation]) -> list[ImportedConversation]:
    """Return the next conversations, as many as may be in memory at once."""
    batch: list[ImportedConversation] = []
    size = 0
    for item in islice(found, BATCH_SIZE):
        batch.append(item)
        size += sum(len(m.content.content) + len(m.content.reasoning) for m in item.messages)
        if size > BATCH_CHARACTERS:
            break
    return batch


@transaction.atomic
def _write(
    projects: ProjectImport, items: list[ImportedConversation], marked_at: datetime
) -> list[int]:
    owner = projects.owner
    conversations = Conversation.objects.bulk_create(
        [
            Conversation(
                owner=owner,
                title=_title(item),
                pinned=item.pinned,
                archived=item.archived,
                source=item.source,
                project=projects.project_of(item.project),
                deleted_at=marked_at,
                system_prompt=_prompt(owner, item.system),
            )
            for item in items
        ]
    )
    pks: list[dict[str, Message]] = [{} for _ in items]
    for level in _levels(items):
        rows = Message.objects.bulk_create(
            [_row(conversations[index], message, pks[index]) for index, message in level]
        )
        for (index, message), row in zip(level, rows, strict=True):
            pks[index][message.key] = row
    ToolCall.objects.bulk_create(
        _call(made[message.key], call, number)
        for item, made in zip(items, pks, strict=True)
        for message in item.messages
        for number, call in enumerate(message.content.calls, start=1)
    )
    for item, conversation, made in zip(items, conversations, pks, strict=True):
        conversation.active_leaf = _leaf(item, made)
        conversation.updated = item.updated or item.created or timezone.now()
        conversation.created = item.created or conversation.created
        _add_tags(conversation, item.tags)
    Conversation.objects.bulk_update(conversations, ["active_leaf", "updated", "created"])
    return [conversation.pk for conversation in conversations]


def _add_tags(conversation: Conversation, given: Iterable[str]) -> None:
    tags = [tag for tag in (" ".join(tag.split()) for tag in given) if tag]
    if tags:
        short = [tag[: library.TAG_LENGTH] for tag in tags[: library.MAX_TAGS]]
        library.add_tags([conversation], short)


def _levels(items: list[ImportedConversation]) -> Iterator[list[tuple[int, ImportedMessage]]]:
    """Yield the messages of all conversations by depth: parents are written before children."""
    levels: dict[int, list[tuple[int, ImportedMessage]]] = defaultdict(list)
    for index, item in enumerate(items):
        depth: dict[str | None, int] = {None: -1}
        for message in item.messages:
            depth[message.key] = depth[message.parent] + 1
            levels[depth[message.key]].append((index, message))
    for number in sorted(levels):
        yield levels[number]


def _row(conversation: Conversation, message: ImportedMessage, made: dict[str, Message]) -> Message:
    return Message(
        conversation=conversation,
        parent=made[message.parent] if message.parent is not None else None,
        role=message.role,
        content=to_storable(message.content.content),
        reasoning=to_storable(message.content.reasoning),
        model=message.model[:300],
        status=Status.COMPLETE,
        created=message.created or timezone.now(),
    )


def _call(answer: Message, call: ImportedCall, number: int) -> ToolCall:
    """Return a row. Every call needs an ID that its result can be sent with."""
    return ToolCall(
        answer=answer,
        round=call.round,
        call_id=to_storable(call.call_id) or f"call_{number}",
        name=to_storable(call.name),
        arguments=to_storable(call.arguments),
        text_to=call.text_to,
        reasoning_to=call.reasoning_to,
        state=call.state,
        result=to_storable(call.result),
    )


def _leaf(item: ImportedConversation, made: dict[str, Message]) -> Message | None:
    """Return the leaf of the active branch, or of the newest one."""
    key = item.active if item.active in made else item.messages[-1].key
    children = {message.parent: message.key for message in item.messages}
    while key in children:
        key = children[key]
    return made[key] if key is not None else None


def _title(item: ImportedConversation) -> str:
    title = " ".join(item.title.replace("\0", " ").split())[:TITLE_LENGTH]
    texts = (message.content.content for message in item.messages)
    text = next((text for text in texts if text.strip()), "")
    return title or (first_line(text) if text else "")


def _prompt(owner: User, text: str) -> SystemPrompt | None:
    if not (text := text.replace("\0", " ").strip()):
        return None
    same = SystemPrompt.objects.owned_by(owner).filter(text=text).first()
    return same or save_system_prompt(owner=owner, name="Imported", text=text)
