"""ChatGPT's export: a conversation as a mapping of nodes, a step of an answer in each. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from apps.chat.transfer.normalise import (
    BETWEEN,
    Imported,
    Said,
    Words,
    call,
    part_text,
    tidied,
    time,
)

# Places in a list of sources that is not exported, between characters that no font has.
_CITATION = re.compile("\ue200[^\ue200\ue201]*\ue201")


def conversation(item: dict[str, Any]) -> Imported:
    """One item of `conversations.json`."""
    said = [_said(str(key), node) for key, node in item["mapping"].items()]
    key = item.get("conversation_id") or item.get("id") or ""
    messages, active = tidied(said, item.get("current_node"))
    return Imported(
        source=f"chatgpt:{key}"[:200] if key else "",
        title=str(item.get("title") or ""),
        active=active,
        messages=messages,
        created=time(item.get("create_time")),
        updated=time(item.get("update_time")),
        archived=bool(item.get("is_archived")),
        pinned=bool(item.get("is_starred")),
    )


def _said(key: str, node: Mapping[str, Any]) -> Said:
    message = node.get("message") or {}
    content = message.get("content") or {}
    metadata = message.get("metadata") or {}
    role = (message.get("author") or {}).get("role") or ""
    recipient = message.get("recipient") or "all"
    words, failed = _words(content), False
    if metadata.get("is_visually_hidden_from_conversation"):
        role = ""
    elif role == "tool":
        words, failed = Words(_result(content)), _has_failed(content, metadata)
    elif recipient != "all":
        words = Words(calls=(_call(str(recipient), content),))
    return Said(
        key,
        node.get("parent"),
        role,
        words,
        str(metadata.get("model_slug") or ""),
        time(message.get("create_time")),
        failed,
    )


def _words(content: Mapping[str, Any]) -> Words:
    kind = content.get("content_type")
    if kind == "thoughts":
        thoughts = content.get("thoughts") or []
        told = (str(t.get("content") or t.get("summary") or "") for t in thoughts)
        return Words(reasoning=BETWEEN.join(told))
    if kind in {"text", "multimodal_text"}:
        return Words(_parts(content))
    if kind == "code":
        return Words(f"```\n{content.get('text') or ''}\n```")
    return Words()


def _call(recipient: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """What a model sends to a tool: JSON, or the program that it is to run."""
    text = str(content.get("text") or _parts(content))
    is_json = text.lstrip()[:1] in {"{", "["}
    return call(recipient, text if is_json or not text else {"input": text})


def _result(content: Mapping[str, Any]) -> str:
    match content.get("content_type"):
        case "tether_quote" | "sonic_webpage":
            told = (content.get(name) for name in ("title", "url", "text"))
            return "\n".join(str(line) for line in told if line)
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
