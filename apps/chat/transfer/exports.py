"""Conversations as files: Markdown to read, JSON to keep, JSONL to train with."""

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from apps.chat.conversations import services
from apps.chat.models import Conversation, Message, Role, ToolCall
from apps.chat.prompt.context import Turn
from apps.chat.tools import history
from apps.chat.tools.settings import definition_of
from apps.core import tools
from apps.runtime.async_db import in_db

FORMAT = "workbench-conversations"
VERSION = 1
AT_ONCE = 20
CALL_FIELDS = (
    *("round", "call_id", "name", "arguments", "text_to", "reasoning_to", "state", "result"),
)


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
            parts.append(f"> **Thinking**\n>\n> {quoted}")
        for part in history.parts(message.content, "", message.tool_calls.all()):
            parts += [part.text] if part.text else []
            parts += [_call_as_markdown(call) for call in part.calls]
    return "\n\n".join(parts) + "\n"


def _call_as_markdown(call: ToolCall) -> str:
    texts = (call.shown_arguments, call.result)
    longest = max((len(run) for text in texts for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)  # what was called with, or answered, may hold fences
    arguments = f"{fence}json\n{call.shown_arguments}\n{fence}"
    result = f"\n\n{fence}\n{call.result}\n{fence}" if call.result else ""
    return f"**Called `{call.name}`**\n\n{arguments}{result}"


def as_training_line(conversation: Conversation, branch: Iterable[Message]) -> str:
    """The branch that is shown, as one line of OpenAI's fine-tuning format; "" where it is empty.

    Calls and their results are messages of their own, with the tools' definitions beside them.
    Questions without an answer are left out: there is nothing to learn from them.
    """
    messages: list[dict[str, Any]] = []
    if conversation.system_prompt is not None:
        messages.append({"role": "system", "content": conversation.system_prompt.text})
    question: Message | None = None
    answered = False
    called: set[str] = set()
    for message in branch:
        if message.role == Role.USER:
            question = message
        elif question is not None and message.content:
            calls = list(message.tool_calls.all())
            called.update(call.name for call in calls)
            messages.append({"role": "user", "content": question.content})
            messages += map(_as_trained, history.turns(message, calls))
            question, answered = None, True
    if not answered:
        return ""
    line: dict[str, Any] = {"messages": messages}
    if called:
        known = sorted(tools.available(conversation.owner_id), key=lambda tool: tool.name)
        line["tools"] = [definition_of(tool) for tool in known if tool.name in called]
    return json.dumps(line, ensure_ascii=False) + "\n"


def _as_trained(turn: Turn) -> dict[str, Any]:
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.call_id, "content": turn.content}
    if turn.calls:
        calls = [call.as_sent() for call in turn.calls]
        return {"role": "assistant", "content": turn.content or None, "tool_calls": calls}
    return {"role": "assistant", "content": turn.content}


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
        "tool_calls": [
            {name: getattr(call, name) for name in CALL_FIELDS} for call in message.tool_calls.all()
        ],
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
        tree = conversation.messages.filter(deleted_at=None).order_by("pk")
        tree = tree.prefetch_related("tool_calls")
        return json.dumps(as_json(conversation, tree), ensure_ascii=False)
    branch = list(_branch(conversation))
    if form == "jsonl":
        return as_training_line(conversation, branch)
    return as_markdown(conversation, branch)


def _branch(conversation: Conversation) -> Iterator[Message]:
    for shown in services.active_branch(conversation):
        yield shown.message
