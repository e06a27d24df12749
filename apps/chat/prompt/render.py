"""Messages of the branch as messages of the OpenAI API. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from apps.chat.prompt.messages import PromptMessage
from apps.llm.client import Message


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
