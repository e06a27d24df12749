"""The messages that a prompt is made of, and as the OpenAI API has them. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from apps.llm.client import Message, SentCall, SentFunction


@dataclass(frozen=True, slots=True)
class PromptCall:
    """A tool call exactly as the model wrote it."""

    id: str
    name: str
    arguments: str

    def as_sent(self) -> SentCall:
        """Return it in the OpenAI API's shape, with arguments that every server accepts."""
        function = SentFunction(name=self.name, arguments=_as_json_object(self.arguments))
        return SentCall(id=self.id, type="function", function=function)


def _as_json_object(arguments: str) -> str:
    """Return arguments unchanged if they are a JSON object, else an object that holds them.

    llama-server answers 500 to a history with anything that is not JSON, and templates iterate
    over its names: one bad call would end its conversation.
    """
    try:
        value = json.loads(arguments or "{}", parse_constant=_refuse)
        if isinstance(value, dict):
            json.dumps(value, ensure_ascii=False).encode()  # no half of a surrogate pair
            return arguments or "{}"
    except (ValueError, RecursionError):
        pass
    return json.dumps({"invalid": arguments}, ensure_ascii=False)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON.")


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of the branch, or one step of an answer that called tools."""

    id: int
    role: str
    content: str
    reasoning: str = ""
    pinned: bool = False
    """Kept when the beginning is cut, together with its question or answer."""
    calls: tuple[PromptCall, ...] = ()
    """Of role assistant: the tools it called. Their results follow with the role tool."""
    call_id: str = ""
    """Of role tool: the call that it answers."""
    image_tokens: int = 0
    """Tokens of its images, if they were counted."""


@dataclass(frozen=True, slots=True)
class PromptSummary:
    """A model's summary of the beginning of a branch."""

    text: str
    upto: int
    """The last message it covers."""
    id: int = 0


@dataclass(frozen=True, slots=True)
class CountedPrompt:
    """The tokens that the server counted for an earlier prompt and its answer together."""

    tokens: int
    upto: int
    """The ID of that answer."""
    cut_before_message: int | None = None
    """The first message of that prompt, if its beginning was cut."""
    front_bytes: int = 0
    """Bytes that stood in the place of the cut messages."""
    left_out: frozenset[int] = frozenset()
    """Tool results that the prompt no longer held. They stay out."""


def render(
    system: str | None,
    front: Sequence[Message],
    messages: Sequence[PromptMessage],
    *,
    keep_reasoning: bool,
) -> list[Message]:
    """Return the messages of a request.

    Answers that stayed empty are left out, and the questions around one become one message: many
    chat templates refuse two messages of the same role in a row.
    """
    rendered: list[Message] = [{"role": "system", "content": system}] if system else []
    rendered += front
    newest = max((i for i, one in enumerate(messages) if one.role == "user"), default=-1)
    for place, message in enumerate(messages):
        if message.calls or message.role == "tool":
            # Every template keeps the reasoning between the calls of the newest answer.
            rendered.append(_render_call(message, keep_reasoning or place > newest))
            continue
        after_tools = bool(rendered) and rendered[-1]["role"] == "tool"
        if message.role == "assistant" and not message.content and not after_tools:
            continue
        if rendered and rendered[-1]["role"] == message.role == "user":
            joined = f"{rendered[-1]['content']}\n\n{message.content}"
            rendered[-1] = {"role": "user", "content": joined}
            continue
        one: Message = {"role": message.role, "content": message.content}
        if keep_reasoning and message.reasoning:
            one["reasoning_content"] = message.reasoning
        rendered.append(one)
    return rendered


def _render_call(message: PromptMessage, keep_reasoning: bool) -> Message:
    if message.role == "tool":
        return {"role": "tool", "content": message.content, "tool_call_id": message.call_id}
    rendered: Message = {
        "role": message.role,
        "content": message.content,
        "tool_calls": [call.as_sent() for call in message.calls],
    }
    if keep_reasoning and message.reasoning:
        rendered["reasoning_content"] = message.reasoning
    return rendered


def with_images(message: Message, images: Mapping[str, str]) -> Message:
    """Return the message with images in place of their marks, in the OpenAI API's shape.

    Args:
        images: data URLs by mark.
    """
    if not images or not any(mark in message["content"] for mark in images):
        return message
    parts: list[dict[str, Any]] = []
    for text in re.split(f"({'|'.join(map(re.escape, images))})", message["content"]):
        if text in images:
            parts.append({"type": "image_url", "image_url": {"url": images[text]}})
        elif text:
            parts.append({"type": "text", "text": text})
    return cast(Message, {**message, "content": parts})
