"""The events of an answer that are new to its reader. Pure."""

from collections.abc import Iterable

from apps.llm.chat_request import ChatRequest
from apps.llm.events import Done, Event, Token
from apps.llm.stream.continuation import EchoStripper
from apps.llm.stream.think_tags import ThinkTags


class EventFilter:
    """Turns the events of a request's answer into those that are new to its reader.

    An answer that continues an assistant's message is stripped of its echo; in all others a thought
    inside the text becomes reasoning.
    """

    def __init__(self, request: ChatRequest) -> None:
        last = request.messages[-1] if request.messages else None
        is_continued = last is not None and last["role"] == "assistant"
        self._echo = EchoStripper(last["content"]) if last and is_continued else None
        self._tags = ThinkTags()

    def __call__(self, event: Event) -> Iterable[Event]:
        match event:
            case Token():
                return self._without_echo(event.text) if self._echo else self._tags.feed(event.text)
            case Done() if self._echo:
                return [Token(text), event] if (text := self._echo.end()) else [event]
            case Done():
                return (*self._tags.end(), event)
        return (event,)

    def _without_echo(self, text: str) -> Iterable[Event]:
        assert self._echo is not None
        return [Token(new)] if (new := self._echo.feed(text)) else []
