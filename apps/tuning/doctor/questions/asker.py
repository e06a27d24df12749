"""Sends the doctor's questions: one at a time, each on an idle slot, no more than agreed."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.llm.client import ChatRequest, Message
from apps.llm.events import Done, Event, Progress, Reasoning, Started, Token, Usage
from apps.llm.permits import Lane, Permit
from apps.servers.services import Target, hold_slot
from apps.tuning.doctor.answers import Answer, Answers
from apps.tuning.doctor.reading import Reading
from apps.tuning.hooks import NO_DRAFTS, Drafts

LABEL = "Doctor"


@dataclass(slots=True)
class Reply:
    """A streamed answer, with its times in seconds since the request."""

    answer: Answer
    usage: Usage | None
    seconds: float
    """Until the first token."""
    whole_seconds: float


@dataclass(slots=True)
class _Received:
    began: float
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    finish_reason: str = ""
    usage: Usage | None = None
    first: float = 0.0

    def add(self, event: Event) -> None:
        if not self.first and not isinstance(event, Progress | Started):
            self.first = time.perf_counter() - self.began
        match event:
            case Token():
                self.texts.append(event.text)
            case Reasoning():
                self.thoughts.append(event.text)
            case Usage():
                self.usage = event
            case Done():
                self.finish_reason = event.finish_reason

    def reply(self) -> Reply:
        pieces = len(self.texts) + len(self.thoughts)
        tokens = self.usage.completion_tokens if self.usage else pieces
        answer = Answer("".join(self.texts), "".join(self.thoughts), self.finish_reason, tokens)
        return Reply(answer, self.usage, self.first, time.perf_counter() - self.began)


class Asker:
    """The requests of one examination."""

    def __init__(self, target: Target, questions: int) -> None:
        self.target = target
        self.left = questions
        self.speed: float | None = None
        """Tokens per second of the latest answer that reported it."""
        self.drafts = NO_DRAFTS

    async def chat(self, asked: str | Sequence[Message], max_tokens: int, **fields: Any) -> Reply:
        """Ask one question in a chat.

        Args:
            asked: the text of one message, or all messages.
            fields: of the request, beside its messages.

        Raises:
            LLMError: the answer is not complete.
            NoSlot, SlotTaken: others need the slots.
        """
        received = _Received(time.perf_counter())
        async with self.stream(asked, max_tokens, **fields) as events:
            async for event in events:
                received.add(event)
        return received.reply()

    @asynccontextmanager
    async def stream(
        self, asked: str | Sequence[Message], max_tokens: int, **fields: Any
    ) -> AsyncIterator[AsyncGenerator[Event]]:
        """Ask one question in a chat, and hold a slot until the block ends. See `chat`."""
        self._count()
        messages: Sequence[Message] = (
            [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        )
        request = ChatRequest(
            self.target.model,
            messages,
            max_tokens,
            {"temperature": 0.0, **fields.pop("params", {})},
            **fields,
        )
        # A character is at most one token, of all that is asked here.
        async with (
            self._slot(len(str(messages)) + max_tokens) as held,
            aclosing(self._events(request, held)) as events,
        ):
            yield events

    async def _events(self, request: ChatRequest, held: Permit) -> AsyncGenerator[Event]:
        async with aclosing(self.target.client.stream_chat(request)) as events:
            async for event in events:
                if isinstance(event, Usage):
                    held.record_usage(event)
                    self.speed = event.tokens_per_second or self.speed
                    self.drafts += drafts_of(event)
                yield event

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts. Errors: see `chat`."""
        self._count()
        async with self._slot(sum(map(len, texts))):
            return await self.target.client.embed(self.target.model, texts)

    async def get(self, path: str) -> Any:
        """Read one of the server's own routes."""
        return await self.target.client.get(path)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask one of the server's own routes, which uses no slot and changes nothing."""
        reply = await self.target.client.post(path, body)
        return reply if isinstance(reply, dict) else {}

    def _slot(self, tokens: int) -> Any:
        target = self.target
        return hold_slot(
            target.server, lane=Lane.IDLE, model=target.model, tokens=tokens, label=LABEL
        )

    def _count(self) -> None:
        assert self.left, "more questions than were agreed"
        self.left -= 1


def drafts_of(usage: Usage) -> Drafts:
    if not usage.drafted:
        return NO_DRAFTS
    return Drafts(usage.drafted, usage.draft_accepted, usage.completion_tokens)


Question = Callable[[Asker, Reading, Answers], Awaitable[None]]
