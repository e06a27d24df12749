"""Conversations as Workbench exports them (`exports.as_json`). Pure."""

from collections.abc import Mapping
from typing import Any

from apps.chat.transfer.normalise import (
    ImportedCall,
    ImportedConversation,
    ImportedMessage,
    MessageContent,
    normalise_tree,
    parse_time,
)


def conversation(item: dict[str, Any]) -> ImportedConversation:
    nodes = [
        ImportedMessage(
            str(node["id"]),
            None if node.get("parent") is None else str(node["parent"]),
            str(node["role"]),
            MessageContent(
                str(node.get("content") or ""),
                str(node.get("reasoning") or ""),
                tuple(_call(call, node) for call in node.get("tool_calls") or []),
            ),
            str(node.get("model") or ""),
            parse_time(node.get("created")),
        )
        for node in item["messages"]
    ]
    prompt = item.get("system_prompt") or {}
    key = item.get("id")
    messages, active = normalise_tree(nodes, item.get("active"))
    return ImportedConversation(
        source=f"workbench:{key}:{item.get('created')}"[:200] if key else "",
        title=str(item.get("title") or ""),
        active=active,
        messages=messages,
        created=parse_time(item.get("created")),
        updated=parse_time(item.get("updated")),
        pinned=bool(item.get("pinned")),
        archived=bool(item.get("archived")),
        tags=[str(tag) for tag in item.get("tags") or []],
        system=str(prompt.get("text") or ""),
        project=str(item.get("project") or ""),
    )


def _call(call: Mapping[str, Any], node: Mapping[str, Any]) -> ImportedCall:
    """Return a call, with positions within the texts of its message."""
    text, reasoning = str(node.get("content") or ""), str(node.get("reasoning") or "")
    return ImportedCall(
        name=str(call["name"])[:200],
        arguments=str(call.get("arguments") or ""),
        call_id=str(call.get("call_id") or "")[:200],
        round=min(max(int(call["round"]), 1), 1000),
        text_to=min(max(int(call.get("text_to") or 0), 0), len(text)),
        reasoning_to=min(max(int(call.get("reasoning_to") or 0), 0), len(reasoning)),
        state="failed" if call.get("state") == "failed" else "done",
        result=str(call.get("result") or ""),
    )
