"""Putting imported conversations into the database: all of a file, or nothing of it.

They are written a few at a time, unseen, and appear together at the end. What a process that dies
leaves behind is never seen, and deleted a day later with everything else that was removed.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import IO

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.chat.answering.titles import first_line
from apps.chat.conversations import library
from apps.chat.conversations.services import save_system_prompt
from apps.chat.models import TITLE_LENGTH, Conversation, Message, Status, SystemPrompt, ToolCall
from apps.chat.transfer import read_sandboxed
from apps.chat.transfer.normalise import Call, Imported, Said

AT_ONCE = 100
AT_ONCE_CHARACTERS = 8_000_000


@dataclass(frozen=True)
class Result:
    conversations: int
    messages: int
    known: int
    """Imported before, so left out."""


def import_file(owner: User, file: IO[bytes]) -> Result:
    """Imports a file of another program.

    Raises:
        BadFile: nothing was imported.
    """
    unseen = timezone.now()
    known = set(
        Conversation.objects.owned_by(owner).exclude(source="").values_list("source", flat=True)
    )
    conversations = messages = skipped = 0
    written: list[int] = []
    found = read_sandboxed.conversations(file)
    try:
        while batch := _some(found):
            new = []
            for item in batch:
                if item.source and item.source in known:
                    skipped += 1
                else:
                    known.add(item.source)
                    new.append(item)
            written.extend(_write(owner, new, unseen))
            conversations += len(new)
            messages += sum(len(item.messages) for item in new)
    except BaseException:
        found.close()  # the process that reads it
        Conversation.objects.filter(pk__in=written).delete()
        raise
    Conversation.objects.filter(owner=owner, deleted_at=unseen).update(deleted_at=None)
    return Result(conversations, messages, skipped)


def _some(found: Iterator[Imported]) -> list[Imported]:
    """The next few, as many as may lie in memory and be written at once."""
    batch: list[Imported] = []
    size = 0
    for item in islice(found, AT_ONCE):
        batch.append(item)
        size += sum(len(said.words.content) + len(said.words.reasoning) for said in item.messages)
        if size > AT_ONCE_CHARACTERS:
            break
    return batch


@transaction.atomic
def _write(owner: User, items: list[Imported], unseen: datetime) -> list[int]:
    conversations = Conversation.objects.bulk_create(
        [
            Conversation(
                owner=owner,
                title=_title(item),
                pinned=item.pinned,
                archived=item.archived,
                source=item.source,
                deleted_at=unseen,
                system_prompt=_prompt(owner, item.system),
            )
            for item in items
        ]
    )
    pks: list[dict[str, Message]] = [{} for _ in items]
    for level in _levels(items):
        rows = Message.objects.bulk_create(
            [_row(conversations[index], said, pks[index]) for index, said in level]
        )
        for (index, said), row in zip(level, rows, strict=True):
            pks[index][said.key] = row
    ToolCall.objects.bulk_create(
        ToolCall(answer=made[said.key], **_call(call, number))
        for item, made in zip(items, pks, strict=True)
        for said in item.messages
        for number, call in enumerate(said.words.calls, start=1)
    )
    for item, conversation, made in zip(items, conversations, pks, strict=True):
        conversation.active_leaf = _leaf(item, made)
        conversation.updated = item.updated or item.created or timezone.now()
        conversation.created = item.created or conversation.created
        if tags := [tag for tag in (" ".join(tag.split()) for tag in item.tags) if tag]:
            short = [tag[: library.TAG_LENGTH] for tag in tags[: library.MAX_TAGS]]
            library.add_tags([conversation], short)
    Conversation.objects.bulk_update(conversations, ["active_leaf", "updated", "created"])
    return [conversation.pk for conversation in conversations]


def _levels(items: list[Imported]) -> Iterator[list[tuple[int, Said]]]:
    """Messages of all conversations by their depth: each level's parents have keys already."""
    levels: dict[int, list[tuple[int, Said]]] = defaultdict(list)
    for index, item in enumerate(items):
        depth: dict[str | None, int] = {None: -1}
        for said in item.messages:
            depth[said.key] = depth[said.parent] + 1
            levels[depth[said.key]].append((index, said))
    for number in sorted(levels):
        yield levels[number]


def _row(conversation: Conversation, said: Said, made: dict[str, Message]) -> Message:
    return Message(
        conversation=conversation,
        parent=made[said.parent] if said.parent is not None else None,
        role=said.role,
        content=said.words.content.replace("\0", "\ufffd"),
        reasoning=said.words.reasoning.replace("\0", "\ufffd"),
        model=said.model[:300],
        status=Status.COMPLETE,
        created=said.created or timezone.now(),
    )


def _call(call: Call, number: int) -> Call:
    """As the database takes it; every call has a name that its result can be sent with."""
    texts = {name: value for name, value in call.items() if isinstance(value, str)}
    stored = call | {name: value.replace("\0", "\ufffd") for name, value in texts.items()}
    return stored | {"call_id": stored["call_id"] or f"call_{number}"}


def _leaf(item: Imported, made: dict[str, Message]) -> Message | None:
    """The end of the branch that was shown, or of the newest one."""
    key = item.active if item.active in made else item.messages[-1].key
    children = {said.parent: said.key for said in item.messages}
    while key in children:
        key = children[key]
    return made[key] if key is not None else None


def _title(item: Imported) -> str:
    title = " ".join(item.title.replace("\0", " ").split())[:TITLE_LENGTH]
    said = next((said.words.content for said in item.messages if said.words.content.strip()), "")
    return title or (first_line(said) if said else "")


def _prompt(owner: User, text: str) -> SystemPrompt | None:
    if not (text := text.replace("\0", " ").strip()):
        return None
    same = SystemPrompt.objects.owned_by(owner).filter(text=text).first()
    return same or save_system_prompt(owner=owner, name="Imported", text=text)
