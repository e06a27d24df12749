"""Near-duplicates by meaning while a job runs: the cosine of embeddings.

A row is accepted first and compared within about a second, together with others and without a slot
of the chat model. If its meaning is that of an earlier row, a seed row or a test row, it is
rejected with the reason, and a job that refills replaces it. While the embedding server is offline,
rows are generated all the same; the job shows it, and is done only when all rows are compared. A
text that is too long for the embedding model is compared by its characters alone.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from apps.batch.errors import PostProcessingBlocked
from apps.batch.handlers import LateRejection, PostProcess
from apps.batch.models import Item
from apps.batch.services import accepted_rows_since
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.services import Embedder, embed, identify
from apps.generation.recipe.spec import Spec
from apps.generation.rows import answer_check
from apps.generation.rows.duplicate_filter import stored_table
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Use
from apps.servers.services import NoServer, default_target
from apps.similarity.cosine import find_nearest

ROWS_AT_ONCE = 512

Vectors = NDArray[np.float32]


def post_process(batch_id: int, spec: Spec) -> PostProcess | None:
    """Build the comparison of a job's rows; None if its spec sets no threshold."""
    return None if spec.filters.meaning is None else SemanticFilter(batch_id, spec)


@dataclass
class KnownTexts:
    """Vectors of the texts that no row may repeat."""

    code: str
    name: str
    """The name of such a text in a reason, with a gap for its number."""
    places: list[int] = field(default_factory=list)
    """The number of each text."""
    _vectors: Vectors = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))

    @property
    def vectors(self) -> Vectors:
        """(texts, dimensions)"""
        return self._vectors[: len(self.places)]

    def add(self, places: Sequence[int], vectors: Vectors) -> None:
        start, end = len(self.places), len(self.places) + len(places)
        if end > len(self._vectors):
            larger = np.empty((max(end, 2 * start), vectors.shape[1]), dtype=np.float32)
            if start:
                larger[:start] = self.vectors
            self._vectors = larger
        self._vectors[start:end] = vectors
        self.places += places


class SemanticFilter:
    """Vectors of a job's rows so far, in the memory of its pump."""

    def __init__(self, batch_id: int, spec: Spec) -> None:
        self._batch_id = batch_id
        self._spec = spec
        self._threshold = spec.filters.meaning or 1.0
        self._forget()

    def _forget(self) -> None:
        self._fingerprint = ""
        self._tests = KnownTexts("contaminated", "row {} of the test set")
        self._seeds = KnownTexts("seed_meaning", "seed row {}")
        self._rows = KnownTexts("near_meaning", "row {}")
        self._since: datetime | None = None
        self._index = -1

    async def __call__(self) -> list[LateRejection] | None:
        """Raises PostProcessingBlocked: the embedding server cannot be asked."""
        try:
            embedder = await identify(await in_db(default_target, Use.EMBEDDINGS), lane=Lane.BATCH)
            if embedder.fingerprint != self._fingerprint:  # cosines of two models mean nothing
                self._forget()
                await self._read_texts(embedder)
                self._fingerprint = embedder.fingerprint
            items = await in_db(self._next)
            if not items:
                return None
            places, vectors = await _embedded(embedder, [self._text(item) for item in items])
        except (LLMError, NoServer) as error:
            raise PostProcessingBlocked(
                f"Waiting for the embedding server: {error} Rows are generated in the "
                "meantime and compared later."
            ) from error
        found = await asyncio.to_thread(self.reject_similar, [items[at] for at in places], vectors)
        self._since, self._index = items[-1].finished, items[-1].index
        return found

    async def _read_texts(self, embedder: Embedder) -> None:
        filters = self._spec.filters
        tests = [] if filters.test_set is None else [filters.test_set]
        for texts, stored in ((self._tests, tests), (self._seeds, self._spec.stored.values())):
            for key in stored:
                table = await in_db(stored_table, key)
                places, vectors = await _embedded(embedder, table.texts)
                if places:
                    texts.add(places, vectors)

    def _next(self) -> list[Item]:
        rows = accepted_rows_since(self._batch_id, self._since, self._index)
        fields = ("index", "finished", "reviewed", "output", "edited")
        return list(rows.only(*fields)[:ROWS_AT_ONCE])

    def _text(self, item: Item) -> str:
        return "\n".join(answer_check.free_texts_of(self._spec.recipe, item.current_output))

    def reject_similar(self, items: list[Item], vectors: Vectors) -> list[LateRejection]:
        """Return the rows to reject, in order of acceptance, and remember the others."""
        if not items:
            return []
        groups = (self._tests, self._seeds, self._rows)
        known = [(texts, find_nearest(vectors, texts.vectors)) for texts in groups if texts.places]
        rejected: list[LateRejection] = []
        remaining: list[int] = []
        for at, item in enumerate(items):
            matches = [
                (texts, texts.places[int(found.partner[at])], float(found.cosine[at]))
                for texts, found in known
            ]
            if remaining:
                cosines = vectors[remaining] @ vectors[at]
                best = int(cosines.argmax())
                matches.append((self._rows, items[remaining[best]].index, float(cosines[best])))
            close = [match for match in matches if match[2] >= self._threshold]
            if close and not item.reviewed:  # a reviewed row stays
                rejected.append(_rejection(item, *close[0]))
            else:
                remaining.append(at)
        self._rows.add([items[at].index for at in remaining], vectors[remaining])
        return rejected


def _rejection(item: Item, texts: KnownTexts, place: int, cosine: float) -> LateRejection:
    share = round(100 * min(cosine, 1.0))
    reason = f"About {share}% similar in meaning to {texts.name.format(place + 1)}."
    return LateRejection(item.pk, texts.code, reason)


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> tuple[list[int], Vectors]:
    """Embed texts. Returns the places of those that have a vector, and the vectors.

    Raises:
        LLMError: the server did not answer.
    """
    places = [place for place, text in enumerate(texts) if text.strip()]
    while places:
        try:
            found = await embed(embedder, [texts[place] for place in places], lane=Lane.BATCH)
        except TextsTooLarge as error:
            places = [place for at, place in enumerate(places) if at not in error.problems]
        else:
            return places, found
    return [], np.zeros((0, 0), dtype=np.float32)
