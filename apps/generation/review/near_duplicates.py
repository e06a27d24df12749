"""How alike the stored rows of a job are, by their characters or by their meaning.

Bounded in time also for 100,000 rows: what takes long (a signature or a vector for each row) is
worked out once, in parts, and kept.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet
from numpy.typing import NDArray

from apps.batch.models import Item, ItemStatus
from apps.batch.services import rows_of, store_minhashes
from apps.embeddings.services import embed_texts
from apps.generation.models import Job
from apps.generation.recipe.spec import Spec
from apps.generation.rows import answer_check
from apps.generation.rows.duplicate_filter import stored_table
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Use
from apps.servers.services import default_target
from apps.similarity import thresholds
from apps.similarity.minhash import HASHES, minhash_signature
from apps.similarity.thresholds import ThresholdOutcomes

# So long a page's question may take for what has to be worked out once; then it asks again.
SECONDS = 6.0
CHUNK = 500
# All pairs of so many vectors are compared within seconds, all of 100,000 are not; and while a job
# runs they are some 50 MB of its worker's memory.
MEANING_ROWS = 20_000
# Signatures and pairs of so many take about 300 MB in the process that shows the page.
TEXT_ROWS = 200_000


class By(StrEnum):
    """What is compared."""

    TEXT = "text"
    """Runs of five characters in common (Jaccard, by MinHash)."""
    MEANING = "meaning"
    """The cosine of the texts' embeddings."""


CODES = {
    By.TEXT: ("near_duplicate", "seed_duplicate"),
    By.MEANING: ("near_meaning", "seed_meaning"),
}


class TooMany(Exception):
    """More rows than can be compared. The message says how many can."""


@dataclass(frozen=True, slots=True)
class ComparisonPending:
    """Not all rows can be compared yet; to be asked again."""

    done: int
    total: int


@dataclass(frozen=True)
class RowComparison:
    """A job's rows, seed rows first and then as they were judged, and what thresholds do to them.

    The arrays have one place for each row that has a text.
    """

    seeds: int
    keys: list[int]
    indices: list[int]
    accepted: NDArray[np.bool_]
    fixed: NDArray[np.bool_]
    """A person has accepted it, or it is a seed row: it stays."""
    outcomes: ThresholdOutcomes

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Which places are rows of the job."""
        return np.arange(len(self.keys)) >= self.seeds

    def as_dict(self) -> dict[str, Any]:
        steps = thresholds.STEPS
        out, back = [], []
        for step in steps:
            goes, comes = self.changes(step)
            out.append(int(goes.sum()))
            back.append(int(comes.sum()))
        counts = thresholds.histogram(self.rows, self.outcomes.pairs)
        rows = int(self.rows.sum())
        return {
            "steps": list(steps),
            "histogram": counts,
            "below": rows - sum(counts),
            "rows": rows,
            "accepted": int((self.accepted & self.rows).sum()),
            "seen": int((self.fixed & self.rows).sum()),
            "out": out,
            "back": back,
            "all_back": int((~self.accepted & self.rows).sum()),
        }

    def changes(self, step: int | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which accepted rows go at a threshold, and which rejected ones come back."""
        stays = np.ones(len(self.keys), dtype=bool) if step is None else self.outcomes.kept_at(step)
        movable = self.rows & ~self.fixed
        return movable & self.accepted & ~stays, self.rows & ~self.accepted & stays


async def compare_rows(job: Job, by: By) -> RowComparison | ComparisonPending:
    """How alike the rows are. Bounded: what takes long is done in parts, see `ComparisonPending`.

    Raises:
        TooMany: so many rows are not compared.
        NoServer, LLMError, TextsTooLarge: comparing by meaning is not possible.
    """
    spec = job.spec
    if by is By.TEXT:
        count = await in_db(_candidates(job.batch_id, by).count)
        if count > TEXT_ROWS:
            raise TooMany(f"{count:,} rows. The limit for comparing is {TEXT_ROWS:,}.")
        left = await in_db(_sketch, job.batch_id, spec, time.monotonic() + SECONDS)
        if left:
            return ComparisonPending(max(0, count - left), count)
        return await in_db(_by_text, job.batch_id, spec)
    return await _by_meaning(job.batch_id, spec)


def _candidates(batch_id: int, by: By) -> QuerySet[Item]:
    """The rows that this measure judges: what was rejected for another reason stays so."""
    accepted = Q(status=ItemStatus.ACCEPTED)
    rejected = Q(status=ItemStatus.REJECTED, code__in=CODES[by])
    return rows_of(batch_id).filter(accepted | rejected)


def _text(spec: Spec, item: Item) -> str:
    return "\n".join(answer_check.free_texts_of(spec.recipe, item.current_output))


# --- By text ------------------------------------------------------------------


def _sketch(batch_id: int, spec: Spec, deadline: float) -> int:
    """Gives rows the signature they lack; returns how many still lack one when the time is up."""
    missing = _candidates(batch_id, By.TEXT).filter(minhash=None)
    while items := list(missing.only("pk", "output", "edited")[:CHUNK]):
        if time.monotonic() > deadline:
            return missing.count()
        found = []
        for item in items:
            signature = minhash_signature(_text(spec, item))
            found.append((b"" if signature is None else signature.tobytes(), item.pk))
        store_minhashes(found)
    return 0


def _by_text(batch_id: int, spec: Spec) -> RowComparison:
    seeds = _seed_signatures(tuple(spec.stored.values()))
    signatures = [signature for _, signature in seeds]
    # One that was accepted since has no signature yet, and is compared when this is asked again.
    found = _candidates(batch_id, By.TEXT).exclude(minhash=b"").exclude(minhash=None)
    known = list(
        found.order_by("finished", "index").values_list(
            "pk", "index", "status", "reviewed", "minhash"
        )
    )
    signatures += [bytes(minhash or b"") for *_, minhash in known]
    array = np.frombuffer(b"".join(signatures), dtype=np.uint16).reshape(-1, HASHES)
    return _measured([at for at, _ in seeds], [row[:4] for row in known], array, By.TEXT)


@lru_cache(maxsize=2)
def _seed_signatures(stored: tuple[int, ...]) -> list[tuple[int, bytes]]:
    """By the keys of stored rows, which never change: 20,000 of them take seconds."""
    found = []
    for at, text in _seed_texts(stored):
        signature = minhash_signature(text)
        if signature is not None:
            found.append((at, signature.tobytes()))
    return found


def _seed_texts(stored: Sequence[int]) -> list[tuple[int, str]]:
    """The seed rows that have a text, each with its place in its table."""
    texts = [(at, text) for pk in stored for at, text in enumerate(stored_table(pk).texts)]
    return [(at, text) for at, text in texts if text.strip()]


# --- By meaning ---------------------------------------------------------------


class _NotYet(Exception):
    """The time is up and so many texts have no vector."""

    def __init__(self, left: int) -> None:
        super().__init__(left)
        self.left = left


async def _by_meaning(batch_id: int, spec: Spec) -> RowComparison | ComparisonPending:
    target = await in_db(default_target, Use.EMBEDDINGS)
    seeds, rows, texts = await in_db(_texts, batch_id, spec)
    if not texts:
        return _measured([], [], np.zeros((0, 1), dtype=np.float32), By.MEANING)
    deadline = time.monotonic() + SECONDS

    async def watch(done: int, total: int) -> None:
        if time.monotonic() > deadline and done < total:
            raise _NotYet(total - done)

    try:
        vectors = await embed_texts(target, texts, lane=Lane.INTERACTIVE, progress=watch)
    except _NotYet as ended:
        return ComparisonPending(len(texts) - ended.left, len(texts))
    return await asyncio.to_thread(_measured, seeds, rows, vectors, By.MEANING)


def _texts(batch_id: int, spec: Spec) -> tuple[list[int], list[tuple[Any, ...]], list[str]]:
    """The places of the seed rows, the job's rows and the texts of both."""
    found = _candidates(batch_id, By.MEANING)
    seeds = _seed_texts(list(spec.stored.values()))
    count = len(seeds) + found.count()
    if count > MEANING_ROWS:
        raise TooMany(
            f"Comparing by meaning is limited to {MEANING_ROWS:,} rows, seed rows included. This "
            f"job has {count:,}. Compare by text instead."
        )
    texts = [text for _, text in seeds]
    rows = []
    for item in found.order_by("finished", "index").only(
        "pk", "index", "status", "reviewed", "output", "edited"
    ):
        text = _text(spec, item)
        if text.strip():
            texts.append(text)
            rows.append((item.pk, item.index, item.status, item.reviewed))
    return [at for at, _ in seeds], rows, texts


def _measured(
    seeds: list[int], rows: list[tuple[Any, ...]], array: NDArray[Any], by: By
) -> RowComparison:
    """Rows a person has accepted are judged first: what resembles them goes."""
    known = [(0, at, ItemStatus.ACCEPTED, True) for at in seeds] + rows
    accepted = np.array([row[2] == ItemStatus.ACCEPTED for row in known], bool)
    fixed = np.array([bool(row[3]) for row in known], bool) & accepted
    order = np.argsort(~fixed, kind="stable")
    of = thresholds.pair_signatures if by is By.TEXT else thresholds.pair_vectors
    fixed = fixed[order]
    outcomes = thresholds.evaluate(len(known), of(array[order]), fixed.tolist())
    return RowComparison(
        len(seeds),
        [known[at][0] for at in order],
        [known[at][1] for at in order],
        accepted[order],
        fixed,
        outcomes,
    )
