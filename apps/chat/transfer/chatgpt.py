"""ChatGPT exports: a conversation is a mapping of nodes, each a step of an answer. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from apps.chat.transfer.normalise import (
    BETWEEN,
    ImportedCall,
    ImportedConversation,
    ImportedMessage,
    MessageContent,
    make_call,
    normalise_tree,
    parse_time,
    part_text,
)

# References to a list of sources that is not exported, between private-use characters.
_CITATION = re.compile("\ue200[^\ue200\ue201]*\ue201")


def conversation(item: dict[str, Any]) -> ImportedConversation:
    """Return one item of `conversations.json`."""
    nodes = [_message(str(key), node) for key, node in item["mapping"].items()]
    key = item.get("conversation_id") or item.get("id") or ""
    messages, active = normalise_tree(nodes, item.get("current_node"))
    return ImportedConversation(
        source=f"chatgpt:{key}"[:200] if key else "",
        title=str(item.get("title") or ""),
        active=active,
        messages=messages,
        created=parse_time(item.get("create_time")),
        updated=parse_time(item.get("update_time")),
        archived=bool(item.get("is_archived")),
        pinned=bool(item.get("is_starred")),
    )


def _message(key: str, node: Mapping[str, Any]) -> ImportedMessage:
    message = node.get("message") or {}
    content = message.get("content") or {}
    metadata = message.get("metadata") or {}
    role = (message.get("author") or {}).get("role") or ""
    recipient = message.get("recipient") or "all"
    parts, failed = _content(content), False
    if metadata.get("is_visually_hidden_from_conversation"):
        role = ""
    elif role == "tool":
        parts, failed = MessageContent(_result(content)), _has_failed(content, metadata)
    elif recipient != "all":
        parts = MessageContent(calls=(_call(str(recipient), content),))
    return ImportedMessage(
        key,
        node.get("parent"),
        role,
        parts,
        str(metadata.get("model_slug") or ""),
        parse_time(message.get("create_time")),
        failed,
    )


def _content(content: Mapping[str, Any]) -> MessageContent:
    kind = content.get("content_type")
    if kind == "thoughts":
        thoughts = content.get("thoughts") or []
        texts = (str(t.get("content") or t.get("summary") or "") for t in thoughts)
        return MessageContent(reasoning=BETWEEN.join(texts))
    if kind in {"text", "multimodal_text"}:
        return MessageContent(_parts(content))
    if kind == "code":
        return MessageContent(f"```\n{content.get('text') or ''}\n```")
    return MessageContent()


def _call(recipient: str, content: Mapping[str, Any]) -> ImportedCall:
    """Return a call: its arguments are JSON, or a program to run."""
    text = str(content.get("text") or _parts(content))
    is_json = text.lstrip()[:1] in {"{", "["}
    return make_call(recipient, text if is_json or not text else {"input": text})


def _result(content: Mapping[str, Any]) -> str:
    match content.get("content_type"):
        case "tether_quote" | "sonic_webpage":
            lines = (content.get(name) for name in ("title", "url", "text"))
            return "\n".join(str(line) for line in lines if line)
        case "tether_browsing_display":
            return str(content.get("result") or content.get("summary") or "")
        case _:
            return str(content.get("text") or _parts(content))


def _has_failed(content: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    status = (metadata.get("aggregate_result") or {}).get("status")
    return content.get("content_type") == "system_error" or str(status).startswith("failed")


def _parts(content: Mapping[str, Any]) -> str:
    texts = (_CITATION.sub("", part_text(part)) for part in content.get("parts") or [])
    return BETWEEN.join(filter(None, texts))
