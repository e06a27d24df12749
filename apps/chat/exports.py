"""Conversations as files: Markdown to read, JSON to keep, JSONL to train with."""

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from apps.chat import services
from apps.chat.models import Conversation, Message, Role
from apps.core.db import in_db

FORMAT = "workbench-conversations"
VERSION = 1
AT_ONCE = 20


@dataclass(frozen=True)
class Format:
    suffix: str
    content_type: str


FORMATS = {
    "md": Format(".md", "text/markdown; charset=utf-8"),
    "json": Format(".json", "application/json"),
    "jsonl": Format(".jsonl", "application/jsonl"),
}


def file_name(title: str, suffix: str) -> str:
    """ASCII, and nothing that a path or a header could mean."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-")[:60]
    return (safe or "conversation") + suffix


def as_markdown(conversation: Conversation, branch: Iterable[Message]) -> str:
    """The branch that is shown, for people."""
    parts = [f"# {conversation}"]
    if conversation.system_prompt is not None:
        parts.append(f"## System prompt\n\n{conversation.system_prompt.text}")
    for message in branch:
        if message.role == Role.USER:
            parts.append(f"## Question\n\n{message.content}")
            continue
        parts.append(f"## Answer ({message.model})" if message.model else "## Answer")
        if message.reasoning:
            quoted = message.reasoning.replace("\n", "\n> ")
            parts.append(f"> **Thoughts**\n>\n> {quoted}")
        parts.append(message.content)
    return "\n\n".join(parts) + "\n"


def as_training_line(conversation: Conversation, branch: Iterable[Message]) -> str:
    """The branch that is shown, as one line of OpenAI's fine-tuning format; "" where it is empty.

    Questions without an answer are left out: there is nothing to learn from them.
    """
    messages: list[dict[str, str]] = []
    if conversation.system_prompt is not None:
        messages.append({"role": "system", "content": conversation.system_prompt.text})
    question: Message | None = None
    answered = False
    for message in branch:
        if message.role == Role.USER:
            question = message
        elif question is not None and message.content:
            messages.append({"role": "user", "content": question.content})
            messages.append({"role": "assistant", "content": message.content})
            question, answered = None, True
    return json.dumps({"messages": messages}, ensure_ascii=False) + "\n" if answered else ""


def as_json(conversation: Conversation, tree: Iterable[Message]) -> dict[str, Any]:
    """All of it, with every branch. What `imports` reads."""
    prompt = conversation.system_prompt
    return {
        "id": conversation.pk,
        "title": conversation.title,
        "created": conversation.created.isoformat(),
        "updated": conversation.updated.isoformat(),
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "tags": [tag.name for tag in conversation.tags.all()],
        "model": conversation.model,
        "params": conversation.params,
        "system_prompt": {"name": prompt.name, "text": prompt.text} if prompt else None,
        "active": conversation.active_leaf_id,
        "messages": [_message(message) for message in tree],
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "id": message.pk,
        "parent": message.parent_id,
        "role": message.role,
        "content": message.content,
        "reasoning": message.reasoning,
        "model": message.model,
        "created": message.created.isoformat(),
        "usage": message.usage,
    }


async def export(ids: list[int], form: str) -> AsyncIterator[str]:
    """Conversations one after the other, never all of them in memory.

    Args:
        ids: the owner's own; the caller has seen to it.
        form: one of FORMATS.
    """
    if form == "json":
        yield f'{{"format": "{FORMAT}", "version": {VERSION}, "conversations": [\n'
    first = True
    for start in range(0, len(ids), AT_ONCE):
        for text in await in_db(_several, ids[start : start + AT_ONCE], form):
            if not first and form != "jsonl":
                yield ",\n" if form == "json" else "\n---\n\n"
            yield text
            first = False
    if form == "json":
        yield "\n]}\n"


def _several(ids: list[int], form: str) -> list[str]:
    rows = Conversation.objects.select_related("system_prompt").prefetch_related("tags")
    found = rows.in_bulk(ids)
    return [text for pk in ids if pk in found and (text := one(found[pk], form))]


def one(conversation: Conversation, form: str) -> str:
    """A conversation in one of FORMATS; "" where there is nothing to export of it."""
    if form == "json":
        tree = conversation.messages.filter(removed=None).order_by("pk")
        return json.dumps(as_json(conversation, tree), ensure_ascii=False)
    branch = list(_branch(conversation))
    if form == "jsonl":
        return as_training_line(conversation, branch)
    return as_markdown(conversation, branch)


def _branch(conversation: Conversation) -> Iterator[Message]:
    for shown in services.active_branch(conversation):
        yield shown.message
