"""Sends the doctor's questions: one at a time, each on an idle slot, no more than agreed."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.llm.client import ChatRequest
from apps.llm.events import Done, Progress, Reasoning, Started, Token, Usage
from apps.llm.permits import Lane
from apps.servers.services import Target, hold_slot
from apps.tuning.doctor.answers import Answer, Answers
from apps.tuning.doctor.reading import Reading

LABEL = "Doctor"


@dataclass(slots=True)
class Reply:
    """A streamed answer, with the time of its first token."""

    answer: Answer
    usage: Usage | None
    seconds: float


@dataclass(slots=True)
class _Received:
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    finish_reason: str = ""
    usage: Usage | None = None


class Asker:
    """The requests of one examination."""

    def __init__(self, target: Target, questions: int) -> None:
        self.target = target
        self.left = questions

    async def chat(self, text: str, max_tokens: int, **fields: Any) -> Reply:
        """Ask one question in a chat.

        Args:
            fields: of the request, beside its messages.

        Raises:
            LLMError: the answer is not complete.
            NoSlot, SlotTaken: others need the slots.
        """
        self._count()
        request = ChatRequest(
            self.target.model,
            [{"role": "user", "content": text}],
            max_tokens,
            {"temperature": 0.0, **fields.pop("params", {})},
            **fields,
        )
        got, first = _Received(), 0.0
        # A character is at most one token, of all that is asked here.
        most_tokens = len(text) + max_tokens
        async with self._slot(most_tokens) as held:
            began = time.perf_counter()
            async with aclosing(self.target.client.stream_chat(request)) as events:
                async for event in events:
                    if not first and not isinstance(event, Progress | Started):
                        first = time.perf_counter() - began
                    match event:
                        case Token():
                            got.texts.append(event.text)
                        case Reasoning():
                            got.thoughts.append(event.text)
                        case Usage():
                            got.usage = event
                            held.record_usage(event)
                        case Done():
                            got.finish_reason = event.finish_reason
        answer = Answer(
            "".join(got.texts),
            "".join(got.thoughts),
            got.finish_reason,
            got.usage.completion_tokens if got.usage else len(got.texts) + len(got.thoughts),
        )
        return Reply(answer, got.usage, first)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts. Errors: see `chat`."""
        self._count()
        async with self._slot(sum(map(len, texts))):
            return await self.target.client.embed(self.target.model, texts)

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


Question = Callable[[Asker, Reading, Answers], Awaitable[None]]
