"""Texts in, unit vectors out; each text is sent to a model once, ever.

A text is looked up by the model's fingerprint and its own hash. Only the unseen go to the server
(`sending`). What comes is saved beside that (`keeping`), so work that was interrupted continues
where it was.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from apps.embeddings import arrays, background, canary, retention
from apps.embeddings.models import Embedding
from apps.embeddings.saver import Keeper, check_width
from apps.embeddings.sender import Part, Sender, Vectors
from apps.llm import errors
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State, Use
from apps.servers.services import Target, choose_target, refresh_server

LOOKUP_HASHES = 900  # SQLite's older limit is 999 parameters a statement
ANSWERED_SECONDS = 0.05  # what is saved later waits so long, which an answer's way out takes

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


async def identify(
    target: Target, *, lane: Lane = Lane.INTERACTIVE, anew: bool = False
) -> Embedder:
    """Which model is behind a target now: two fixed texts are embedded from time to time.

    Args:
        anew: embed them, however lately that was done.

    Raises:
        Unreachable, Loading, Unauthorized: the server is not ready.
        LLMError: the server failed.
    """
    server = await refresh_server(target.server)
    if server.state != State.READY:
        kind = {State.LOADING: errors.Loading, State.UNAUTHORIZED: errors.Unauthorized}
        reason = server.facts.error or "The embedding server is not ready. Try again in a moment."
        raise kind.get(State(server.state), errors.Unreachable)(reason)
    # A target chosen before the server was ever seen could not name its model.
    unnamed = target.model in {"", "default"}
    model = choose_target(server, use=Use.EMBEDDINGS).model if unnamed else target.model
    known = Target(server, model)
    told = fingerprint_of(server, model)
    return Embedder(known, await canary.fingerprint(known, told, lane=lane, anew=anew))


def fingerprint_of(server: Server, model: str) -> str:
    """By what was last seen of the server, without asking it: of another size, another one.

    Models that look alike to the server are told apart by their vectors (`canary`).
    """
    weights = next((facts.weights for facts in server.model_facts if facts.id == model), [])
    # Where the server says nothing of the weights, the address has to do.
    told = [model, *weights] if weights else [model, server.base_url]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


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
    embedder = await identify(target, lane=lane)
    return await embed(embedder, texts, lane=lane, progress=progress)


async def embed(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    lane: Lane,
    progress: Progress | None = None,
    stats: Stats | None = None,
    save_later: bool = False,
    lasting: bool = True,
) -> Vectors:
    """Like `embed_texts`, with a model that was identified before. `stats` is added to.

    Args:
        lasting: texts of a dataset or a job, which use them again; else of a single question.
        save_later: return before new vectors are in the database (see `later.settled`).
    """
    if not texts:
        raise ValueError("No text to embed.")
    places: dict[bytes, int] = {}
    inverse = np.fromiter(
        (places.setdefault(text_hash(text), len(places)) for text in texts),
        dtype=np.intp,
        count=len(texts),
    )
    hashes = list(places)
    vectors, known = await in_db(_look_up, embedder.fingerprint, hashes, lasting)
    unseen = _first_texts(texts, inverse, known, len(hashes))
    expires = retention.end_of(lasting=lasting)
    work = _Work(embedder, lane, hashes, vectors, progress, stats or Stats(), expires)
    await work.run(unseen, save_later=save_later)
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
    return arrays.take(work.vectors, inverse)


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
    fingerprint: str, hashes: list[bytes], lasting: bool
) -> tuple[Vectors | None, NDArray[np.bool_]]:
    """The vectors that are there, and which those are; None where there are none."""
    known = np.zeros(len(hashes), dtype=np.bool_)
    places = {value: place for place, value in enumerate(hashes)}
    vectors: Vectors | None = None
    # The model by its fingerprint in the same query: a single text costs one trip, not two.
    rows = Embedding.objects.filter(model__fingerprint=fingerprint)
    for start in range(0, len(hashes), LOOKUP_HASHES):
        some = hashes[start : start + LOOKUP_HASHES]
        if lasting:
            retention.renew(fingerprint, some)
        found = rows.filter(text_hash__in=some)
        for value, stored in found.values_list("text_hash", "vector"):
            vector = np.frombuffer(stored, dtype="<f4")
            if vectors is None:
                vectors = arrays.empty((len(hashes), len(vector)))
            place = places[bytes(value)]
            vectors[place] = vector
            known[place] = True
    return vectors, known


class _Work:
    """The texts of one call that have to be sent: where their vectors go, and who hears of it."""

    def __init__(
        self,
        embedder: Embedder,
        lane: Lane,
        hashes: list[bytes],
        vectors: Vectors | None,
        progress: Progress | None,
        stats: Stats,
        expires: date | None,
    ) -> None:
        self.hashes = hashes
        self.vectors = vectors
        self.progress = progress
        self.stats = stats
        self._done = 0
        self._total = 0
        self._keeper = Keeper(
            embedder.fingerprint, embedder.target.model, self._tell, expires=expires
        )
        self._sender = Sender(embedder.target, lane, self._arrived, self._keeper.room)

    @property
    def problems(self) -> dict[int, errors.LLMError]:
        return self._sender.problems

    async def run(self, unseen: list[tuple[int, str]], *, save_later: bool) -> None:
        self._total = len(unseen)
        if self.progress is not None:
            await self.progress(0, self._total)
        if not unseen:
            return
        if save_later:
            background.soon(self._keeper.run())
            try:
                await self._sender.run(unseen)
            finally:
                background.soon(self._end_when_answered())
            return
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._keeper.run())
                both.create_task(self._send(unseen))
        except BaseExceptionGroup as group:
            # Both end for the first reason; the rest of the group is its echo.
            raise group.exceptions[0] from None
        finally:
            await self._keeper.flush()  # whatever ended the work, what has come is kept

    async def _send(self, unseen: list[tuple[int, str]]) -> None:
        try:
            await self._sender.run(unseen)
        finally:
            self._keeper.end()

    async def _end_when_answered(self) -> None:
        # A thread that saves takes turns of Python from the answer that somebody waits for.
        await asyncio.sleep(ANSWERED_SECONDS)
        self._keeper.end()

    def _arrived(self, part: Part, vectors: Vectors, were_unit: bool) -> None:
        if self.vectors is None:
            self.vectors = arrays.empty((len(self.hashes), vectors.shape[1]))
        check_width(vectors.shape[1], self.vectors.shape[1])
        places = [place for place, _ in part]
        self.vectors[places] = vectors
        self.stats.normalised &= were_unit
        self.stats.sent += len(part)
        self._keeper.put([self.hashes[place] for place in places], vectors)

    async def _tell(self, saved: int) -> None:
        self._done += saved
        if self.progress is not None:
            await self.progress(self._done, self._total)
