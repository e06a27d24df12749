"""Texts in, unit vectors out; each text is sent to a model once, ever.

A text is looked up by the model's fingerprint and its own hash. Only unseen texts go to the server
(`sender`). Their vectors are saved meanwhile (`saver`), so interrupted work continues where it was.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from apps.embeddings import arrays, background_saves, canary, retention
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.models import Embedding
from apps.embeddings.saver import VectorSaver, check_dimensions
from apps.embeddings.sender import Sender, TextBatch, Vectors
from apps.llm import errors
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State, Use
from apps.servers.services import Target, choose_target, find_fallback, refresh_server

LOOKUP_HASHES = 900  # SQLite's older limit is 999 parameters a statement
SAVE_DELAY_SECONDS = 0.05  # later saves wait until the answer is on its way

Progress = Callable[[int, int], Awaitable[None]]


@dataclass(slots=True)
class EmbedStats:
    """Counters of one call, or of several with the same object."""

    sent: int = 0
    """Texts that a server embedded and that were saved."""
    normalised: bool = True
    """True if the server's vectors had unit length. They are normalised in any case."""


@dataclass(frozen=True, slots=True)
class Embedder:
    """A target with the fingerprint of the model behind it."""

    target: Target
    fingerprint: str


async def identify(
    target: Target, *, lane: Lane = Lane.INTERACTIVE, recheck: bool = False
) -> Embedder:
    """Identify the model behind a target, by two fixed texts that are embedded from time to time.

    While the default server is away, its fallback is used if it gives the same vectors.

    Args:
        recheck: embed them now, however recent the last check is.

    Raises:
        Unreachable, Loading, Unauthorized: the server is not ready.
        LLMError: the server failed.
    """
    server = await refresh_server(target.server)
    if server.state == State.UNREACHABLE:
        away = Embedder(_named(server, target.model), "")
        if (other := await _find_fallback(away, lane=lane, recheck=recheck)) is not None:
            return other
    if server.state != State.READY:
        kind = {State.LOADING: errors.Loading, State.UNAUTHORIZED: errors.Unauthorized}
        reason = server.facts.error or "The embedding server is not ready. Try again in a moment."
        raise kind.get(State(server.state), errors.Unreachable)(reason)
    known = _named(server, target.model)
    reported = server_fingerprint(server, known.model)
    return Embedder(known, await canary.fingerprint(known, reported, lane=lane, recheck=recheck))


def _named(server: Server, model: str) -> Target:
    """A target with its model's name; one chosen before the first probe of the server has none."""
    unnamed = model in {"", "default"}
    return choose_target(server, "" if unnamed else model, Use.EMBEDDINGS)


async def _find_fallback(
    embedder: Embedder, *, lane: Lane, recheck: bool = False
) -> Embedder | None:
    """The fallback of an embedder whose server is away; None if there is none with its vectors."""
    own = embedder.target
    other = await find_fallback(Use.EMBEDDINGS, own.server)
    if other is None:
        return None
    reported = server_fingerprint(own.server, own.model)
    # Vectors are known by the name of the model where they were first seen.
    found = await canary.fingerprint(other, reported, lane=lane, recheck=recheck, name=own.model)
    if embedder.fingerprint and found != embedder.fingerprint:
        return None
    return Embedder(other, found)


def server_fingerprint(server: Server, model: str) -> str:
    """The fingerprint by the server's known facts: name and size of the model. Sends nothing.

    `canary` distinguishes models that have these in common by their vectors.
    """
    weights = next((facts.weights for facts in server.model_facts if facts.id == model), [])
    # The address stands for weights that the server does not report.
    parts = [model, *weights] if weights else [model, server.base_url]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


async def embed_texts(
    target: Target, texts: Sequence[str], *, lane: Lane, progress: Progress | None = None
) -> Vectors:
    """One unit vector per text, in order: (len(texts), dimensions), float32.

    Args:
        progress: awaited with (done, total) of the texts that had to be sent, first with 0. Its
            exception ends the work; vectors that came before are saved.

    Raises:
        TextsTooLarge: some texts do not fit into the model. All others are saved, so a second call
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
    stats: EmbedStats | None = None,
    save_later: bool = False,
    lasting: bool = True,
) -> Vectors:
    """Like `embed_texts`, with a model that was identified before. `stats` is added to.

    Args:
        lasting: True for texts of a dataset or job, which are used again; False for single texts.
        save_later: return before new vectors are in the database (see `background_saves`).
    """
    if not texts:
        raise ValueError("No text to embed.")
    hashes, inverse = _distinct_hashes(texts)
    vectors, known = await in_db(_look_up, embedder.fingerprint, hashes, lasting)
    unseen = _first_texts(texts, inverse, known, len(hashes))
    expires = retention.expiry_date(lasting=lasting)
    work = _EmbedCall(embedder, lane, hashes, vectors, progress, stats or EmbedStats(), expires)
    try:
        await work.run(unseen, save_later=save_later)
    except errors.Unreachable:
        other = await _find_fallback(embedder, lane=lane)
        if other is None:
            raise
        return await embed(
            other,
            texts,
            lane=lane,
            progress=progress,
            stats=stats,
            save_later=save_later,
            lasting=lasting,
        )
    return work.vectors_of(inverse)


def text_hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _distinct_hashes(texts: Sequence[str]) -> tuple[list[bytes], NDArray[np.intp]]:
    """Return the hashes of the distinct texts, and for each text the place of its hash."""
    places: dict[bytes, int] = {}
    inverse = np.fromiter(
        (places.setdefault(text_hash(text), len(places)) for text in texts),
        dtype=np.intp,
        count=len(texts),
    )
    return list(places), inverse


def _first_texts(
    texts: Sequence[str], inverse: NDArray[np.intp], known: NDArray[np.bool_], distinct: int
) -> list[tuple[int, str]]:
    """The index and text of each distinct text that has no vector yet, short ones first.

    Texts of similar length share a batch: no batch waits for one long text.
    """
    first: dict[int, str] = {}
    for place, number in enumerate(inverse.tolist()):
        if not known[number] and number not in first:
            first[number] = texts[place]
    return sorted(first.items(), key=lambda item: len(item[1]))


def _look_up(
    fingerprint: str, hashes: list[bytes], lasting: bool
) -> tuple[Vectors | None, NDArray[np.bool_]]:
    """The cached vectors and a mask of the texts that have one; None where there are none."""
    known = np.zeros(len(hashes), dtype=np.bool_)
    places = {value: place for place, value in enumerate(hashes)}
    vectors: Vectors | None = None
    # The model by its fingerprint in the same query: a single text costs one trip, not two.
    rows = Embedding.objects.filter(model__fingerprint=fingerprint)
    for start in range(0, len(hashes), LOOKUP_HASHES):
        some = hashes[start : start + LOOKUP_HASHES]
        if lasting:
            retention.extend_expiry(fingerprint, some)
        found = rows.filter(text_hash__in=some)
        for value, stored in found.values_list("text_hash", "vector"):
            vector = np.frombuffer(stored, dtype="<f4")
            if vectors is None:
                vectors = arrays.empty_array((len(hashes), len(vector)))
            place = places[bytes(value)]
            vectors[place] = vector
            known[place] = True
    return vectors, known


class _EmbedCall:
    """The unseen texts of one call: sends them, collects their vectors and reports progress."""

    def __init__(
        self,
        embedder: Embedder,
        lane: Lane,
        hashes: list[bytes],
        vectors: Vectors | None,
        progress: Progress | None,
        stats: EmbedStats,
        expires: date | None,
    ) -> None:
        self.hashes = hashes
        self.vectors = vectors
        self.progress = progress
        self.stats = stats
        self._done = 0
        self._total = 0
        self._saver = VectorSaver(
            embedder.fingerprint, embedder.target.model, self._report, expires=expires
        )
        self._sender = Sender(embedder.target, lane, self._collect, self._saver.has_room)

    async def run(self, unseen: list[tuple[int, str]], *, save_later: bool) -> None:
        self._total = len(unseen)
        if self.progress is not None:
            await self.progress(0, self._total)
        if not unseen:
            return
        if save_later:
            background_saves.start(self._saver.run())
            try:
                await self._sender.run(unseen)
            finally:
                background_saves.start(self._finish_after_answer())
            return
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._saver.run())
                both.create_task(self._send(unseen))
        except BaseExceptionGroup as group:
            # Both end with the first error; the rest of the group follows from it.
            raise group.exceptions[0] from None
        finally:
            await self._saver.flush()  # vectors that came are saved, whatever ended the work

    def vectors_of(self, inverse: NDArray[np.intp]) -> Vectors:
        """Return a vector per text, in order.

        Raises:
            TextsTooLarge: some texts do not fit into the model.
        """
        problems = self._sender.problems
        if problems:
            places = enumerate(inverse.tolist())
            raise TextsTooLarge({at: problems[text] for at, text in places if text in problems})
        assert self.vectors is not None
        if len(self.hashes) == len(inverse):
            return self.vectors
        return arrays.take_rows(self.vectors, inverse)

    async def _send(self, unseen: list[tuple[int, str]]) -> None:
        try:
            await self._sender.run(unseen)
        finally:
            self._saver.finish()

    async def _finish_after_answer(self) -> None:
        # A thread that saves takes turns of Python from the answer that somebody waits for.
        await asyncio.sleep(SAVE_DELAY_SECONDS)
        self._saver.finish()

    def _collect(self, batch: TextBatch, vectors: Vectors, were_unit: bool) -> None:
        if self.vectors is None:
            self.vectors = arrays.empty_array((len(self.hashes), vectors.shape[1]))
        check_dimensions(vectors.shape[1], self.vectors.shape[1])
        places = [place for place, _ in batch]
        self.vectors[places] = vectors
        self.stats.normalised &= were_unit
        self.stats.sent += len(batch)
        self._saver.add([self.hashes[place] for place in places], vectors)

    async def _report(self, saved: int) -> None:
        self._done += saved
        if self.progress is not None:
            await self.progress(self._done, self._total)
