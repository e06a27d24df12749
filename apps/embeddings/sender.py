"""Texts to an embedding server: in batches, over as many requests as it has slots.

Every request is made under a permit. One permit serves the requests that a worker makes within
half a second: where a batch takes 20 ms, asking Redis for each would cost as much as the sending.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from apps.llm import errors
from apps.llm.client import FIRST_BYTE_SECONDS
from apps.llm.permits import Lane, ModelInUse, SlotTaken
from apps.servers.services import Target, hold_slot

# A call becomes one task per text at the server, first come first served: with more texts a call a
# person's single text would wait longer behind them.
BATCH_TEXTS = 32
# A permit that is kept longer would hold up other rows of the same server; people take it anyway.
HOLD_SECONDS = 0.5
ANSWER_SECONDS = FIRST_BYTE_SECONDS + 30  # the client's own limit should come first
MODEL_IN_USE_SECONDS = 2.0
PATIENCE_SECONDS = 10.0  # of a person: a server that is to be left alone for longer is named
# What a server needs to come back after a restart or a model swap.
RETRY_SECONDS = {Lane.BATCH: (0.5, 1, 2, 4, 8, 16, 30), Lane.INTERACTIVE: (0.2,)}

Vectors = NDArray[np.float32]
Part = list[tuple[int, str]]
"""Texts that go in one request, each with its place in the call."""
Arrived = Callable[[Part, Vectors, bool], None]
"""Hears of each answer: unit vectors, and whether the server's own were of unit length."""


class Sender:
    """Sends the texts of one call and hands on each answer as it comes."""

    def __init__(self, target: Target, lane: Lane, arrived: Arrived, room: asyncio.Event) -> None:
        """`room` is set while more may come: it holds the sending up, and no slot meanwhile."""
        self._target = target
        self._lane = lane
        self._arrived = arrived
        self._room = room
        self._parts: list[Part] = []
        self.problems: dict[int, errors.LLMError] = {}
        """Why a text could not be embedded, by its place: it is too large for the model."""

    async def run(self, texts: Part) -> None:
        """Returns when each text has its vector or its problem.

        Args:
            texts: short ones first. Long ones are sent first: the last batch of a run is then a
                short one, and no slot waits for it.

        Raises:
            LLMError: the server failed, also when asked again.
        """
        self._parts = [
            texts[start : start + BATCH_TEXTS] for start in range(0, len(texts), BATCH_TEXTS)
        ]
        width = min(self._target.server.slots, len(self._parts))
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(width):
                    workers.create_task(self._worker())
        except BaseExceptionGroup as group:
            # All workers end for the first reason; the rest of the group is its echo.
            raise group.exceptions[0] from None

    async def _worker(self) -> None:
        mine = _Mine()
        waits = RETRY_SECONDS[self._lane]
        while mine.parts or self._parts:
            await self._room.wait()
            try:
                await self._send_for_a_while(mine)
            except SlotTaken:
                continue
            except ModelInUse:
                await asyncio.sleep(MODEL_IN_USE_SECONDS)
            except (errors.InputTooLarge, errors.PromptTooLong) as error:
                self._halve(mine, error)
            except errors.LLMError as error:
                if not error.transient or mine.failures == len(waits):
                    raise
                wait = getattr(error, "retry_after", None) or waits[mine.failures]
                if self._lane is Lane.INTERACTIVE and wait > PATIENCE_SECONDS:
                    raise
                mine.failures += 1
                await asyncio.sleep(wait)

    async def _send_for_a_while(self, mine: "_Mine") -> None:
        target = self._target
        async with hold_slot(
            target.server, lane=self._lane, model=target.model, label="Embeddings"
        ):
            until = time.monotonic() + HOLD_SECONDS
            while mine.parts or self._parts:
                if not mine.parts:
                    mine.parts.append(self._parts.pop())
                texts = [text for _, text in mine.parts[-1]]
                answer = await _in_time(target.client.embed(target.model, texts))
                self._arrived(mine.parts.pop(), *unit(answer))
                mine.failures = 0
                if time.monotonic() >= until or not self._room.is_set():
                    return

    def _halve(self, mine: "_Mine", error: errors.LLMError) -> None:
        """One text that is too large fails all of its request: halving finds it."""
        part = mine.parts.pop()
        mine.failures = 0
        if len(part) == 1:
            self.problems[part[0][0]] = error
            return
        middle = len(part) // 2
        mine.parts += [part[middle:], part[:middle]]


@dataclass(slots=True)
class _Mine:
    """What one worker has taken and has no answer for."""

    parts: list[Part] = field(default_factory=list)
    """The next one last."""
    failures: int = 0
    """Of the next one, in a row."""


async def _in_time(answer: Awaitable[Vectors]) -> Vectors:
    """The answer, or an error after which one may try again: a lost answer must not hold a run.

    Seen once in many thousand requests, on an overloaded machine: neither answer nor error came,
    and the client's own time limit did not end the wait.
    """
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer
    except TimeoutError as error:
        raise errors.Stalled("The embedding server did not respond in time.") from error


def unit(vectors: Vectors) -> tuple[Vectors, bool]:
    """Vectors of length one, and whether they were. Most servers answer so; nothing relies on it.

    Raises:
        ServerFailed: a vector has no direction, or is no number.
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise errors.ServerFailed("The embedding server returned an invalid vector.")
    were_unit = bool(np.allclose(norms, 1, atol=1e-4))
    return vectors if were_unit else (vectors / norms).astype(np.float32), were_unit


async def embed_few(
    target: Target, texts: Sequence[str], *, lane: Lane
) -> tuple[dict[int, NDArray[np.float32]], dict[int, errors.LLMError]]:
    """The unit vectors of a few texts by place, and why others have none. Nothing is kept.

    Raises:
        LLMError: the server failed, also when asked again.
    """
    vectors: dict[int, NDArray[np.float32]] = {}

    def arrived(part: Part, found: Vectors, were_unit: bool) -> None:
        vectors.update((place, vector) for (place, _), vector in zip(part, found, strict=True))

    room = asyncio.Event()
    room.set()
    sender = Sender(target, lane, arrived, room)
    await sender.run(list(enumerate(texts)))
    return vectors, sender.problems
