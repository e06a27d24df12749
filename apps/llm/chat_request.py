"""A chat request, its answer, and the JSON body that carries the request. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NotRequired, TypedDict

from apps.llm.events import Usage


class SentFunction(TypedDict):
    name: str
    arguments: str
    """A JSON object, as text."""


class SentCall(TypedDict):
    """A tool call of an earlier answer."""

    id: str
    type: str
    function: SentFunction


class Message(TypedDict):
    role: str
    content: str
    reasoning_content: NotRequired[str]
    """Earlier thinking of the model; only for chat templates that keep it."""
    tool_calls: NotRequired[list[SentCall]]
    """The calls of an assistant's message, as they were streamed."""
    tool_call_id: NotRequired[str]
    """The call that a message with the role "tool" answers."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    model: str
    messages: Sequence[Message]
    max_tokens: int | None
    """None: not sent, the server ends the answer where its context does."""
    params: Mapping[str, Any] = field(default_factory=dict)
    response_format: Mapping[str, Any] | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    """Definitions of functions, in the order in which they are sent."""
    tool_choice: str = ""
    """"auto", "none" or "required"; empty: the server's default, which is "auto"."""
    parallel_tool_calls: bool | None = None
    session: str = ""
    """Names the conversation for Olla, which keeps it on the server with its cache."""

    def continued_from(self, text: str, tokens: int) -> "ChatRequest":
        """The request for the rest of an answer that begins with `text`, `tokens` long."""
        *before, last = self.messages
        if last["role"] == "assistant":
            longer: Message = {**last, "content": last["content"] + text}
            messages = [*before, longer]
        else:
            messages = [*self.messages, {"role": "assistant", "content": text}]
        left = None if self.max_tokens is None else max(1, self.max_tokens - tokens)
        return replace(self, messages=messages, max_tokens=left)

    def body(self, *, progress: bool) -> Mapping[str, object]:
        """The JSON body of this request.

        Args:
            progress: ask llama.cpp to report the progress of prompt processing. A server can then
                also be interrupted while it processes the prompt.
        """
        body: dict[str, object] = {
            "model": self.model,
            "messages": self.messages,
            **({} if self.max_tokens is None else {"max_tokens": self.max_tokens}),
            "stream": True,
            "stream_options": {"include_usage": True},
            **({"return_progress": True} if progress else {}),
            **self.params,
        }
        if self.response_format is not None:
            body["response_format"] = self.response_format
        if self.tools:
            body["tools"] = self.tools
            if self.tool_choice:
                body["tool_choice"] = self.tool_choice
            if self.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = self.parallel_tool_calls
        return body


@dataclass(frozen=True, slots=True)
class Completion:
    """A complete answer. Its text is valid JSON only where `finish_reason` is "stop"."""

    text: str
    reasoning: str
    finish_reason: str
    usage: Usage
