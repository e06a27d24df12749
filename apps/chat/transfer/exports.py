"""Conversations as files: Markdown to read, JSON to keep, JSONL to train with."""

import json
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from apps.chat.conversations.branch_view import active_branch
from apps.chat.models import Conversation, Message, Role, ToolCall
from apps.chat.prompt.branch import messages_of_answer, split_at_calls
from apps.chat.prompt.messages import PromptMessage
from apps.chat.tools.settings import definition_of
from apps.chat.transfer.export_projects import export_project
from apps.core import tools
from apps.runtime.async_db import in_db

FORMAT = "workbench-conversations"
VERSION = 1
BATCH_SIZE = 20
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
    """Return a file name in ASCII, without characters that mean something in paths or headers."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-")[:60]
    return (safe or "conversation") + suffix


def as_markdown(conversation: Conversation, branch: Iterable[Message]) -> str:
    """Return the active branch as Markdown."""
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
        for part in split_at_calls(message.content, "", message.tool_calls.all()):
            parts += [part.text] if part.text else []
            parts += [_call_as_markdown(call) for call in part.calls]
    return "\n\n".join(parts) + "\n"


def _call_as_markdown(call: ToolCall) -> str:
    texts = (call.pretty_arguments, call.result)
    longest = max((len(run) for text in texts for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)  # arguments and results may contain fences
    arguments = f"{fence}json\n{call.pretty_arguments}\n{fence}"
    result = f"\n\n{fence}\n{call.result}\n{fence}" if call.result else ""
    return f"**Called `{call.name}`**\n\n{arguments}{result}"


def as_training_line(conversation: Conversation, branch: Iterable[Message]) -> str:
    """Return the active branch as one line of OpenAI's fine-tuning format; "" if it is empty.

    Calls and results are messages of their own, with the definitions of the tools. Questions
    without an answer are left out: there is nothing to learn from them.
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
            messages += map(_training_message, messages_of_answer(message, calls))
            question, answered = None, True
    if not answered:
        return ""
    line: dict[str, Any] = {"messages": messages}
    if called:
        known = sorted(tools.available(conversation.owner_id), key=lambda tool: tool.name)
        line["tools"] = [definition_of(tool) for tool in known if tool.name in called]
    return json.dumps(line, ensure_ascii=False) + "\n"


def _training_message(message: PromptMessage) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
    if message.calls:
        calls = [call.as_sent() for call in message.calls]
        return {"role": "assistant", "content": message.content or None, "tool_calls": calls}
    return {"role": "assistant", "content": message.content}


def as_json(conversation: Conversation, tree: Iterable[Message]) -> dict[str, Any]:
    """Return the conversation with every branch, as `transfer.read` imports it."""
    prompt = conversation.system_prompt
    return {
        "id": conversation.pk,
        "title": conversation.title,
        "project": conversation.project.name if conversation.project else None,
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
        "usage": asdict(message.usage) if message.usage else None,
        "rating": message.rating_word,
        "rating_note": message.rating_note,
        "tool_calls": [
            {name: getattr(call, name) for name in CALL_FIELDS} for call in message.tool_calls.all()
        ],
    }


async def export(ids: list[int], form: str, projects: Sequence[int] = ()) -> AsyncIterator[str]:
    """Yield conversations one after the other, never all of them in memory.

    Args:
        ids: of the owner's conversations; the caller checks that.
        form: one of FORMATS.
        projects: those that stand in JSON with their documents, before the conversations.
    """
    if form == "json":
        yield f'{{"format": "{FORMAT}", "version": {VERSION}, '
        if projects:
            yield '"projects": [\n'
            async for text in _separated(projects):
                yield text
            yield "\n], "
        yield '"conversations": [\n'
    first = True
    for start in range(0, len(ids), BATCH_SIZE):
        for text in await in_db(_export_batch, ids[start : start + BATCH_SIZE], form):
            if not first and form != "jsonl":
                yield ",\n" if form == "json" else "\n---\n\n"
            yield text
            first = False
    if form == "json":
        yield "\n]}\n"


async def _separated(projects: Sequence[int]) -> AsyncIterator[str]:
    first = True
    for pk in projects:
        if text := await in_db(export_project, pk):
            yield text if first else f",\n{text}"
            first = False


def _export_batch(ids: list[int], form: str) -> list[str]:
    rows = Conversation.objects.select_related("system_prompt", "project").prefetch_related("tags")
    found = rows.in_bulk(ids)
    return [text for pk in ids if pk in found and (text := export_one(found[pk], form))]


def export_one(conversation: Conversation, form: str) -> str:
    """Return a conversation in one of FORMATS; "" if it has nothing to export."""
    if form == "json":
        tree = conversation.messages.filter(deleted_at=None).order_by("pk")
        tree = tree.prefetch_related("tool_calls")
        return json.dumps(as_json(conversation, tree), ensure_ascii=False)
    branch = [view.message for view in active_branch(conversation)]
    if form == "jsonl":
        return as_training_line(conversation, branch)
    return as_markdown(conversation, branch)
