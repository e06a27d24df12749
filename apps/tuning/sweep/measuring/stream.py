"""One request of a sweep, and the times of its answer."""

import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from apps.llm.client import ChatRequest, Message
from apps.llm.events import Reasoning, Token, Usage
from apps.servers.models import Kind
from apps.servers.services import Target
from apps.tuning.sweep.figures import Timing
from apps.tuning.sweep.prompts import SCHEMA

# They generate on after the end of an answer, so that all answers are as long.
IGNORES_END = frozenset({Kind.LLAMA_SERVER, Kind.ROUTER, Kind.LLAMA_SWAP})


@dataclass(frozen=True, slots=True)
class Answer:
    timing: Timing
    usage: Usage | None
    text: str


def build_request(
    target: Target, messages: list[Message], max_tokens: int, *, is_json: bool = False
) -> ChatRequest:
    params: Mapping[str, Any] = {"temperature": 1.0}
    if target.server.kind in IGNORES_END and not is_json:
        params = {**params, "ignore_eos": True}
    return ChatRequest(
        target.model, messages, max_tokens, params, response_format=SCHEMA if is_json else None
    )


async def ask(target: Target, request: ChatRequest, arrivals: list[float] | None = None) -> Answer:
    """Stream one answer.

    Args:
        arrivals: each piece's time is also added here as it comes.

    Raises:
        LLMError: the answer is not complete.
    """
    own: list[float] = []
    texts: list[str] = []
    usage: Usage | None = None
    began = time.perf_counter()
    async with aclosing(target.client.stream_chat(request)) as events:
        async for event in events:
            if isinstance(event, Token | Reasoning):
                own.append(time.perf_counter())
                texts.append(event.text)
                if arrivals is not None:
                    arrivals.append(own[-1])
            elif isinstance(event, Usage):
                usage = event
    own = own or [time.perf_counter()]  # an empty answer
    return Answer(_timing(began, own, usage), usage, "".join(texts))


def _timing(began: float, arrivals: list[float], usage: Usage | None) -> Timing:
    if usage is None or usage.is_estimated:
        return Timing(began, arrivals, len(arrivals), None, None)
    cached = usage.cached_tokens if usage.tells_cached else None
    return Timing(began, arrivals, usage.completion_tokens, usage.prompt_tokens, cached)
