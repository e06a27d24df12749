"""Texts in, unit vectors out; each text is sent to a model once, ever.

A text is looked up by the model's fingerprint and its own hash. Only the unseen go to the server,
in batches, over as many requests as it has slots, each under a permit. A batch is saved as it
comes, so work that was interrupted continues where it was.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.core.db import in_db
from apps.embeddings import arrays
from apps.embeddings.models import Embedding, EmbeddingModel
from apps.llm import errors
from apps.llm.client import FIRST_BYTE_SECONDS
from apps.llm.models import State, Use
from apps.llm.services import Target, look_at
from apps.llm.services import target as choose
from apps.llm.slots import Lane, ModelInUse, SlotTaken, permit

# A call becomes one task per text at the server, first come first served: with more texts a call a
# person's single text would wait longer behind them.
BATCH_TEXTS = 32
LOOKUP_HASHES = 900  # SQLite's older limit is 999 parameters a statement
ANSWER_SECONDS = FIRST_BYTE_SECONDS + 30  # the client's own limit should come first
# What a server needs to come back after a restart or a model swap.
MODEL_IN_USE_SECONDS = 2.0
RETRY_SECONDS = {Lane.BATCH: (0.5, 1, 2, 4, 8, 16, 30), Lane.INTERACTIVE: (0.2,)}

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], Awaitable[None]]


class TextsTooLarge(Exception):
    """Some texts do not fit into the model; all others were embedded and kept."""

    def __init__(self, problems: dict[int, errors.LLMError]) -> None:
        first = next(iter(problems.values()))
        super().__init__(
            f"{len(problems):,} texts are too long for the embedding model. {first}"
            if len(problems) > 1
            else str(first)
        )
        self.problems = problems
        """The reason for each text, by its place in the call."""


@dataclass(slots=True)
class Stats:
    """What one call, or several with the same object, found out on the way."""

    sent: int = 0
    """Texts that a server worked on and that were kept."""
    normalised: bool = True
    """Whether the server's vectors were of unit length. They are brought to it in any case."""


@dataclass(frozen=True, slots=True)
class Embedder:
    """A target as it was just seen."""

    target: Target
    fingerprint: str


async def identify(target: Target) -> Embedder:
    """Which model is behind a target now.

    Raises:
        Unreachable, Loading, Unauthorized: the server is not ready.
    """
    server = await look_at(target.server)
    if server.state != State.READY:
        kind = {State.LOADING: errors.Loading, State.UNAUTHORIZED: errors.Unauthorized}
        reason = server.facts.get("error") or "The embedding server is not ready."
        raise kind.get(State(server.state), errors.Unreachable)(reason)
    known = {model["id"]: model for model in server.facts.get("models", [])}
    # A target chosen before the server was ever seen could not name its model.
    unnamed = target.model in {"", "default"}
    model = choose(server, use=Use.EMBEDDINGS).model if unnamed else target.model
    weights = known.get(model, {}).get("weights") or []
    # Where the server says nothing of the weights, the address has to do.
    told = [model, *weights] if weights else [model, server.base_url]
    fingerprint = hashlib.sha256(json.dumps(told).encode()).hexdigest()
    return Embedder(Target(server, model), fingerprint)


async def embed_texts(
    target: Target, texts: Sequence[str], *, lane: Lane, progress: Progress | None = None
) -> Vectors:
    """One unit vector per text, in order: (len(texts), dimensions), float32.

    Args:
        progress: awaited with (done, total) of the texts that had to be sent, at first with 0. What
            it raises ends the work; what was embedded until then is kept.

    Raises:
        TextsTooLarge: some texts do not fit into the model. All others are kept, so a second call
            without them sends nothing.
        LLMError: the server failed, also when asked again.
    """
    return await embed(await identify(target), texts, lane=lane, progress=progress)


async def embed(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    lane: Lane,
    progress: Progress | None = None,
    stats: Stats | None = None,
) -> Vectors:
    """Like `embed_texts`, with a model that was identified before. `stats` is added to."""
    if not texts:
        raise ValueError("There is no text to embed.")
    places: dict[bytes, int] = {}
    inverse = np.fromiter(
        (places.setdefault(text_hash(text), len(places)) for text in texts),
        dtype=np.intp,
        count=len(texts),
    )
    hashes = list(places)
    model, vectors, known = await in_db(_look_up, embedder.fingerprint, hashes)
    unseen = _first_texts(texts, inverse, known, len(hashes))
    work = _Work(embedder, lane, hashes, vectors, progress, stats or Stats(), model)
    await work.run(unseen)
    if work.problems:
        raise TextsTooLarge(
            {
                place: work.problems[distinct]
                for place, distinct in enumerate(inverse.tolist())
                if distinct in work.problems
            }
        )
    assert work.vectors is not None
    if len(hashes) == len(texts):
        return work.vectors
    found = arrays.empty((len(texts), work.vectors.shape[1]))
    return np.take(work.vectors, inverse, axis=0, out=found)


def text_hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _first_texts(
    texts: Sequence[str], inverse: NDArray[np.intp], known: NDArray[np.bool_], distinct: int
) -> list[tuple[int, str]]:
    """The place and text of each distinct text that has no vector yet, short ones first.

    Texts of like length share a batch: the server pads nothing and no batch waits for one giant.
    """
    first: dict[int, str] = {}
    for place, number in enumerate(inverse.tolist()):
        if not known[number] and number not in first:
            first[number] = texts[place]
    return sorted(first.items(), key=lambda item: len(item[1]))


def _look_up(
    fingerprint: str, hashes: list[bytes]
) -> tuple[EmbeddingModel | None, Vectors | None, NDArray[np.bool_]]:
    """The vectors that are there, and which those are; None while nothing is known of the model."""
    known = np.zeros(len(hashes), dtype=np.bool_)
    model = EmbeddingModel.objects.filter(fingerprint=fingerprint).first()
    if model is None:
        return None, None, known
    places = {value: place for place, value in enumerate(hashes)}
    vectors = arrays.empty((len(hashes), model.dimensions))
    for start in range(0, len(hashes), LOOKUP_HASHES):
        rows = Embedding.objects.filter(
            model=model, text_hash__in=hashes[start : start + LOOKUP_HASHES]
        ).values_list("text_hash", "vector")
        for value, vector in rows.iterator():
            place = places[bytes(value)]
            vectors[place] = np.frombuffer(vector, dtype="<f4")
            known[place] = True
    return model, vectors, known


class _Work:
    """The texts of one call that have to be sent."""

    def __init__(
        self,
        embedder: Embedder,
        lane: Lane,
        hashes: list[bytes],
        vectors: Vectors | None,
        progress: Progress | None,
        stats: Stats,
        model: EmbeddingModel | None,
    ) -> None:
        self.embedder = embedder
        self.lane = lane
        self.hashes = hashes
        self.vectors = vectors
        self.progress = progress
        self.stats = stats
        self.problems: dict[int, errors.LLMError] = {}
        self._model = model
        self._done = 0
        self._saving = asyncio.Lock()

    async def run(self, unseen: list[tuple[int, str]]) -> None:
        self._total = len(unseen)
        if self.progress is not None:
            await self.progress(0, self._total)
        # Long ones first: the last batch of a run is then a short one, and no slot waits for it.
        batches = [
            unseen[start : start + BATCH_TEXTS] for start in range(0, len(unseen), BATCH_TEXTS)
        ]
        width = self.embedder.target.server.slots
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(width, len(batches))):
                    workers.create_task(self._worker(batches))
        except BaseExceptionGroup as group:
            # All workers end for the first reason; the rest of the group is its echo.
            raise group.exceptions[0] from None

    async def _worker(self, batches: list[list[tuple[int, str]]]) -> None:
        while batches:
            await self._embed(batches.pop())

    async def _embed(self, batch: list[tuple[int, str]]) -> None:
        """Sends a batch. One text that is too large fails all of them: halving finds it."""
        try:
            vectors = await self._send([text for _, text in batch])
        except (errors.InputTooLarge, errors.PromptTooLong) as error:
            if len(batch) == 1:
                self.problems[batch[0][0]] = error
                return
            middle = len(batch) // 2
            await self._embed(batch[:middle])
            await self._embed(batch[middle:])
            return
        async with self._saving:
            await self._keep([place for place, _ in batch], vectors)
            self._done += len(batch)
            self.stats.sent += len(batch)
            if self.progress is not None:
                await self.progress(self._done, self._total)

    async def _send(self, texts: list[str]) -> Vectors:
        target = self.embedder.target
        waits = iter(RETRY_SECONDS[self.lane])
        while True:
            try:
                async with permit(
                    target.server, lane=self.lane, model=target.model, label="Embeddings"
                ):
                    answer = await _in_time(target.client.embed(target.model, texts))
                vectors, were_unit = _unit(answer)
                self.stats.normalised &= were_unit
                return vectors
            except SlotTaken:
                continue
            except ModelInUse:
                await asyncio.sleep(MODEL_IN_USE_SECONDS)
            except errors.LLMError as error:
                wait = next(waits, None)
                if not error.transient or wait is None:
                    raise
                await asyncio.sleep(getattr(error, "retry_after", None) or wait)

    async def _keep(self, places: list[int], vectors: Vectors) -> None:
        dimensions = vectors.shape[1]
        if self.vectors is None:
            self.vectors = arrays.empty((len(self.hashes), dimensions))
        if self.vectors.shape[1] != dimensions:
            raise errors.ServerFailed(
                f"The embedding model answered with {dimensions} numbers a text and with "
                f"{self.vectors.shape[1]} before. Another model must be behind the same name."
            )
        self.vectors[places] = vectors
        await in_db(self._save, [self.hashes[place] for place in places], vectors)

    def _save(self, hashes: list[bytes], vectors: Vectors) -> None:
        if self._model is None:
            self._model, _ = EmbeddingModel.objects.get_or_create(
                fingerprint=self.embedder.fingerprint,
                defaults={"name": self.embedder.target.model, "dimensions": vectors.shape[1]},
            )
        Embedding.objects.bulk_create(
            [
                Embedding(model=self._model, text_hash=value, vector=vector.tobytes())
                for value, vector in zip(hashes, vectors.astype("<f4"), strict=True)
            ],
            ignore_conflicts=True,  # another run may have embedded the same text meanwhile
        )


async def _in_time(answer: Awaitable[Vectors]) -> Vectors:
    """The answer, or an error after which one may try again: a lost answer must not hold a run.

    Seen once in many thousand requests, on an overloaded machine: neither answer nor error came,
    and the client's own time limit did not end the wait.
    """
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer
    except TimeoutError as error:
        raise errors.Stalled("The embedding server did not answer in time.") from error


def _unit(vectors: Vectors) -> tuple[Vectors, bool]:
    """Vectors of length one, and whether they were. Most servers answer so; nothing relies on it.

    Raises:
        ServerFailed: a vector has no direction, or is no number.
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise errors.ServerFailed("The embedding server answered with a vector that is no vector.")
    were_unit = bool(np.allclose(norms, 1, atol=1e-4))
    return vectors if were_unit else (vectors / norms).astype(np.float32), were_unit
