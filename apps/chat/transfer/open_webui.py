"""Open WebUI's export: thoughts and calls stand as HTML in an answer's text, or beside it. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from apps.chat.transfer.normalise import (
    BETWEEN,
    Call,
    Imported,
    Said,
    Words,
    answered,
    call,
    part_text,
    tidied,
    time,
)

_ATTRIBUTE = re.compile(r"""([\w-]+)=(?:"([^"]*)"|'([^']*)')""")
_BLOCK = re.compile(
    r"""<details\s+type="(reasoning|tool_calls|code_interpreter)"((?:\s+[\w-]+=(?:"[^"]*"|'[^']*'))*)"""
    r"""\s*>""",
)
_END = "</details>"
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)


def conversation(item: dict[str, Any], chat: dict[str, Any]) -> Imported:
    """One item of "Export chats" and the chat in it; or a chat alone, beside nothing."""
    history = chat.get("history") or {}
    said = [_said(str(key), node) for key, node in (history.get("messages") or {}).items()]
    key = item.get("id") or chat.get("id") or ""
    meta = item.get("meta") or {}
    messages, active = tidied(said, history.get("currentId"))
    return Imported(
        source=f"open-webui:{key}"[:200] if key else "",
        title=str(item.get("title") or chat.get("title") or ""),
        active=active,
        messages=messages,
        created=time(item.get("created_at") or chat.get("timestamp")),
        updated=time(item.get("updated_at")),
        archived=bool(item.get("archived")),
        pinned=bool(item.get("pinned")),
        tags=[str(tag) for tag in (meta.get("tags") or chat.get("tags") or [])],
        system=str((chat.get("params") or {}).get("system") or chat.get("system") or ""),
    )


def _said(key: str, node: Mapping[str, Any]) -> Said:
    content = node.get("content")
    if isinstance(content, list):
        content = BETWEEN.join(filter(None, map(part_text, content)))
    role = str(node.get("role") or "")
    text = str(content or "")
    return Said(
        key,
        node.get("parentId"),
        role,
        _answer(text, node.get("output")) if role == "assistant" else Words(text),
        str(node.get("model") or ""),
        time(node.get("timestamp")),
    )


class _Answer:
    """An answer put together from its pieces."""

    def __init__(self) -> None:
        self.words = Words()
        self._said_since = True

    def say(self, text: str) -> None:
        if text := text.strip():
            self.words = self.words.followed_by(Words(text))
            self._said_since = True

    def think(self, text: str) -> None:
        if text := text.strip():
            self.words = self.words.followed_by(Words(reasoning=text))
            self._said_since = True

    def call(self, made: Call) -> None:
        """Calls with nothing between them were made together."""
        words = self.words.followed_by(Words(calls=(made,)))
        if not self._said_since:
            together = {"round": self.words.calls[-1]["round"]}
            words = Words(
                words.content, words.reasoning, (*words.calls[:-1], words.calls[-1] | together)
            )
        self.words, self._said_since = words, False


def _answer(text: str, output: object) -> Words:
    pieces = list(_blocks(text))
    if output and isinstance(output, list) and not pieces:
        words = _of_output([item for item in output if isinstance(item, dict)])
        if words.calls:
            return words
    if not pieces:
        return Words(text)
    answer, place = _Answer(), 0
    for piece in pieces:
        answer.say(text[place : piece.start])
        place = piece.end
        if piece.kind == "reasoning":
            lines = piece.body.strip().splitlines()
            answer.think(unescape("\n".join(line.removeprefix("> ") for line in lines)))
        else:
            body = unescape(piece.body).strip()
            answer.call(_call(piece.kind, _attributes(piece.attributes), body))
    answer.say(text[place:])
    return answer.words


@dataclass(frozen=True)
class _Block:
    """A part of an answer's text that is a thought or a call."""

    start: int
    end: int
    kind: str
    attributes: str
    body: str


def _blocks(text: str) -> Iterator[_Block]:
    """In their order. Each end is looked for once: a search from each beginning is quadratic."""
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


def _call(kind: str, attributes: Mapping[str, str], body: str) -> Call:
    """A call as it stands in the text: what it is, in attributes; its result there or in it."""
    if kind == "code_interpreter":
        code = _FENCE.match(body)
        made = call("code_interpreter", {"code": code[1] if code else body})
        result = attributes.get("output", "")
    else:
        given = _decoded(attributes.get("arguments", ""))
        made = call(attributes.get("name", ""), given, call_id=attributes.get("id", ""))
        result = attributes.get("result") or body
    if attributes.get("done") != "true":
        return made
    return answered(made, _decoded(result))


def _decoded(text: str) -> str:
    """Arguments and results are written as JSON, texts among them too."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def _of_output(items: Iterable[Mapping[str, Any]]) -> Words:
    """An answer as newer versions keep it beside the text: items as of OpenAI's Responses."""
    items = list(items)
    results = {
        str(item.get("call_id")): _texts(item.get("output"))
        for item in items
        if item.get("type") == "function_call_output"
    }
    answer = _Answer()
    for item in items:
        match item.get("type"):
            case "message":
                answer.say(_texts(item.get("content")))
            case "reasoning":
                answer.think(_texts(item.get("summary") or item.get("content")))
            case "function_call":
                call_id = str(item.get("call_id") or "")
                arguments = str(item.get("arguments") or "")
                made = call(str(item.get("name") or ""), arguments, call_id=call_id)
                told = results.get(call_id)
                answer.call(made if told is None else answered(made, told))
    return answer.words


def _texts(value: object) -> str:
    parts = value if isinstance(value, list) else [value]
    return BETWEEN.join(filter(None, map(part_text, parts)))
