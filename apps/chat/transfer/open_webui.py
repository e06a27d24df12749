"""Open WebUI exports: reasoning and calls are HTML in an answer's text, or separate. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import unescape
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

_ATTRIBUTE = re.compile(r"""([\w-]+)=(?:"([^"]*)"|'([^']*)')""")
_BLOCK = re.compile(
    r"""<details\s+type="(reasoning|tool_calls|code_interpreter)"((?:\s+[\w-]+=(?:"[^"]*"|'[^']*'))*)"""
    r"""\s*>""",
)
_END = "</details>"
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)


def conversation(item: dict[str, Any], chat: dict[str, Any]) -> ImportedConversation:
    """Return one item of "Export chats" with its chat; `item` is empty for a chat alone."""
    history = chat.get("history") or {}
    nodes = [_message(str(key), node) for key, node in (history.get("messages") or {}).items()]
    key = item.get("id") or chat.get("id") or ""
    meta = item.get("meta") or {}
    messages, active = normalise_tree(nodes, history.get("currentId"))
    return ImportedConversation(
        source=f"open-webui:{key}"[:200] if key else "",
        title=str(item.get("title") or chat.get("title") or ""),
        active=active,
        messages=messages,
        created=parse_time(item.get("created_at") or chat.get("timestamp")),
        updated=parse_time(item.get("updated_at")),
        archived=bool(item.get("archived")),
        pinned=bool(item.get("pinned")),
        tags=[str(tag) for tag in (meta.get("tags") or chat.get("tags") or [])],
        system=str((chat.get("params") or {}).get("system") or chat.get("system") or ""),
    )


def _message(key: str, node: Mapping[str, Any]) -> ImportedMessage:
    content = node.get("content")
    if isinstance(content, list):
        content = BETWEEN.join(filter(None, map(part_text, content)))
    role = str(node.get("role") or "")
    text = str(content or "")
    return ImportedMessage(
        key,
        node.get("parentId"),
        role,
        parse_answer(text, node.get("output")) if role == "assistant" else MessageContent(text),
        str(node.get("model") or ""),
        parse_time(node.get("timestamp")),
    )


class _AnswerBuilder:
    """Builds the content of an answer from its pieces."""

    def __init__(self) -> None:
        self.content = MessageContent()
        self._has_text_since_call = True

    def add_text(self, text: str) -> None:
        if text := text.strip():
            self.content = self.content.followed_by(MessageContent(text))
            self._has_text_since_call = True

    def add_reasoning(self, text: str) -> None:
        if text := text.strip():
            self.content = self.content.followed_by(MessageContent(reasoning=text))
            self._has_text_since_call = True

    def add_call(self, call: ImportedCall) -> None:
        """Add a call. Calls without text between them belong to one round."""
        content = self.content.followed_by(MessageContent(calls=(call,)))
        if not self._has_text_since_call:
            *calls, newest = content.calls
            newest = replace(newest, round=self.content.calls[-1].round)
            content = replace(content, calls=(*calls, newest))
        self.content, self._has_text_since_call = content, False


def parse_answer(text: str, output: object) -> MessageContent:
    """Return the content of an answer, with the calls in its text or in `output`."""
    pieces = list(_blocks(text))
    if output and isinstance(output, list) and not pieces:
        content = _content_of_output([item for item in output if isinstance(item, dict)])
        if content.calls:
            return content
    if not pieces:
        return MessageContent(text)
    answer, place = _AnswerBuilder(), 0
    for piece in pieces:
        answer.add_text(text[place : piece.start])
        place = piece.end
        if piece.kind == "reasoning":
            lines = piece.body.strip().splitlines()
            answer.add_reasoning(unescape("\n".join(line.removeprefix("> ") for line in lines)))
        else:
            body = unescape(piece.body).strip()
            answer.add_call(_call(piece.kind, _attributes(piece.attributes), body))
    answer.add_text(text[place:])
    return answer.content


@dataclass(frozen=True)
class _Block:
    """A part of an answer's text that is reasoning or a call."""

    start: int
    end: int
    kind: str
    attributes: str
    body: str


def _blocks(text: str) -> Iterator[_Block]:
    """Yield blocks in order, searching each end once: from every beginning it is quadratic."""
    place = 0
    while (opening := _BLOCK.search(text, place)) is not None:
        end = text.find(_END, opening.end())
        if end < 0:
            return
        body = text[opening.end() : end].lstrip()
        if body.startswith("<summary>"):
            body = body.partition("</summary>")[2] or body
        place = end + len(_END)
        yield _Block(opening.start(), place, opening[1], opening[2], body)


def _attributes(text: str) -> dict[str, str]:
    found = _ATTRIBUTE.finditer(text)
    return {one[1]: unescape(one[2] if one[2] is not None else one[3]) for one in found}


def _call(kind: str, attributes: Mapping[str, str], body: str) -> ImportedCall:
    """Return a call from its block: attributes, and the result in an attribute or the body."""
    if kind == "code_interpreter":
        code = _FENCE.match(body)
        call = make_call("code_interpreter", {"code": code[1] if code else body})
        result = attributes.get("output", "")
    else:
        given = _decoded(attributes.get("arguments", ""))
        call = make_call(attributes.get("name", ""), given, call_id=attributes.get("id", ""))
        result = attributes.get("result") or body
    if attributes.get("done") != "true":
        return call
    return call.with_result(_decoded(result))


def _decoded(text: str) -> str:
    """Decode text from JSON: arguments and results are encoded, even if they are plain text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def _content_of_output(items: Iterable[Mapping[str, Any]]) -> MessageContent:
    """Return an answer of newer versions: items as in OpenAI's Responses API."""
    items = list(items)
    results = {
        str(item.get("call_id")): _texts(item.get("output"))
        for item in items
        if item.get("type") == "function_call_output"
    }
    answer = _AnswerBuilder()
    for item in items:
        match item.get("type"):
            case "message":
                answer.add_text(_texts(item.get("content")))
            case "reasoning":
                answer.add_reasoning(_texts(item.get("summary") or item.get("content")))
            case "function_call":
                call_id = str(item.get("call_id") or "")
                arguments = str(item.get("arguments") or "")
                call = make_call(str(item.get("name") or ""), arguments, call_id=call_id)
                result = results.get(call_id)
                answer.add_call(call if result is None else call.with_result(result))
    return answer.content


def _texts(value: object) -> str:
    parts = value if isinstance(value, list) else [value]
    return BETWEEN.join(filter(None, map(part_text, parts)))
