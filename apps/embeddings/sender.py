"""Sends texts to an embedding server in batches, with as many requests as it has slots.

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
from apps.llm.permits import Lane, ModelInUse, SlotTaken
from apps.llm.timeouts import FIRST_BYTE_SECONDS
from apps.servers.services import Target, WidthMeter, hold_slot

# A request becomes one task per text at the server, first come first served: a person's single
# text waits behind them, and longer behind more.
BATCH_TEXTS = 32
# A permit that is kept longer would hold up other rows of the same server; people take it anyway.
HOLD_SECONDS = 0.5
ANSWER_SECONDS = FIRST_BYTE_SECONDS + 30  # the client's own limit should come first
MODEL_IN_USE_SECONDS = 2.0
MAX_WAIT_SECONDS = 10.0  # for a person; a server that asks for a longer pause is reported
# The pauses that a server needs to come back after a restart or a model swap.
_PATIENT, _SOON = (0.5, 1, 2, 4, 8, 16, 30), (0.2,)
RETRY_SECONDS: dict[Lane, tuple[float, ...]] = {
    lane: _PATIENT if lane.gives_way else _SOON for lane in Lane
}

Vectors = NDArray[np.float32]
TextBatch = list[tuple[int, str]]
"""The texts of one request, each with its index in the call."""
OnVectors = Callable[[TextBatch, Vectors, bool], None]
"""Receives unit vectors, and True if the server's own had unit length."""


class Sender:
    """Sends the texts of one call and hands on each answer as it comes."""

    def __init__(
        self, target: Target, lane: Lane, on_vectors: OnVectors, has_room: asyncio.Event
    ) -> None:
        """While `has_room` is not set, nothing is sent and no slot is held."""
        self._target = target
        self._lane = lane
        self._on_vectors = on_vectors
        self._has_room = has_room
        self._batches: list[TextBatch] = []
        self._widths = WidthMeter()
        self._workers = 0
        self.problems: dict[int, errors.LLMError] = {}
        """The error of each text that is too large for the model, by its index."""

    async def run(self, texts: TextBatch) -> None:
        """Return when each text has its vector or its problem.

        Args:
            texts: short ones first. Long ones are sent first: the last batch of a run is then a
                short one, and no slot waits for it.

        Raises:
            LLMError: the server failed, also after retries.
        """
        self._batches = [
            texts[start : start + BATCH_TEXTS] for start in range(0, len(texts), BATCH_TEXTS)
        ]
        try:
            async with asyncio.TaskGroup() as group:
                self._start_workers(group)
        except BaseExceptionGroup as errors_of_workers:
            # All workers end with the first error; the rest of the group follows from it.
            raise errors_of_workers.exceptions[0] from None
        finally:
            await self._widths.save(self._target.server)

    @property
    def _width(self) -> int:
        return self._widths.width(self._target.server, self._target.model)

    def _start_workers(self, group: asyncio.TaskGroup) -> None:
        """Start as many workers as requests may be in flight, which may be more than before."""
        for _ in range(min(self._width - self._workers, len(self._batches))):
            self._workers += 1
            group.create_task(self._worker(group))

    async def _worker(self, group: asyncio.TaskGroup) -> None:
        try:
            await self._send_all(group)
        finally:
            self._workers -= 1

    async def _send_all(self, group: asyncio.TaskGroup) -> None:
        state = _WorkerState()
        waits = RETRY_SECONDS[self._lane]
        while state.batches or (self._batches and self._workers <= self._width):
            await self._has_room.wait()
            try:
                await self._send_under_one_permit(state)
                await self._widths.save(self._target.server)
                self._start_workers(group)
            except SlotTaken:
                continue
            except ModelInUse:
                await asyncio.sleep(MODEL_IN_USE_SECONDS)
            except (errors.InputTooLarge, errors.PromptTooLong) as error:
                self._halve(state, error)
            except errors.LLMError as error:
                if not error.transient or state.failures == len(waits):
                    raise
                wait = getattr(error, "retry_after", None) or waits[state.failures]
                if not self._lane.gives_way and wait > MAX_WAIT_SECONDS:
                    raise
                state.failures += 1
                await asyncio.sleep(wait)

    async def _send_under_one_permit(self, state: "_WorkerState") -> None:
        target = self._target
        async with hold_slot(
            target.server,
            lane=self._lane,
            model=target.model,
            label="Embeddings",
            waits=self._lane is Lane.IDLE,
        ):
            until = time.monotonic() + HOLD_SECONDS
            while state.batches or self._batches:
                if not state.batches:
                    state.batches.append(self._batches.pop())
                texts = [text for _, text in state.batches[-1]]
                answer = await self._embed(texts)
                self._on_vectors(state.batches.pop(), *normalise(answer))
                state.failures = 0
                if time.monotonic() >= until or not self._has_room.is_set():
                    return

    async def _embed(self, texts: list[str]) -> Vectors:
        """Embed the texts of one request, and measure the width of the server on it."""
        target, request = self._target, object()
        self._widths.started(target.server, target.model, request)
        try:
            answer = await _with_timeout(target.client.embed(target.model, texts))
        except BaseException as error:
            refused = isinstance(error, errors.Busy)
            self._widths.dropped(target.server, target.model, request, refused=refused)
            raise
        self._widths.finished(target.server, target.model, request, sum(map(len, texts)))
        return answer

    def _halve(self, state: "_WorkerState", error: errors.LLMError) -> None:
        """Split a request that one too large text made fail, until that text is alone."""
        part = state.batches.pop()
        state.failures = 0
        if len(part) == 1:
            self.problems[part[0][0]] = error
            return
        middle = len(part) // 2
        state.batches += [part[middle:], part[:middle]]


@dataclass(slots=True)
class _WorkerState:
    """The batches that one worker has taken and not finished."""

    batches: list[TextBatch] = field(default_factory=list)
    """The next one last."""
    failures: int = 0
    """Of the next one, in a row."""


async def _with_timeout(answer: Awaitable[Vectors]) -> Vectors:
    """Await an answer, or raise an error that is retried: a lost answer must not hold a run.

    Seen once in many thousand requests, on an overloaded machine: neither answer nor error came,
    and the client's own time limit did not end the wait.
    """
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer
    except TimeoutError as error:
        raise errors.Stalled("The embedding server did not respond in time.") from error


def normalise(vectors: Vectors) -> tuple[Vectors, bool]:
    """Bring vectors to length one, and return True if they had it. Most servers send such vectors.

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
    """The unit vectors of a few texts by index, and the errors of the others. Nothing is saved.

    Raises:
        LLMError: the server failed, also after retries.
    """
    vectors: dict[int, NDArray[np.float32]] = {}

    def on_vectors(batch: TextBatch, found: Vectors, were_unit: bool) -> None:
        vectors.update((place, vector) for (place, _), vector in zip(batch, found, strict=True))

    has_room = asyncio.Event()
    has_room.set()
    sender = Sender(target, lane, on_vectors, has_room)
    await sender.run(list(enumerate(texts)))
    return vectors, sender.problems
