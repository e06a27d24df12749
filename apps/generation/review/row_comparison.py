"""A job's rows compared with each other, and the effect of each threshold."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet
from numpy.typing import NDArray

from apps.batch.models import Item, ItemStatus
from apps.batch.services import rows_of
from apps.core.errors import DomainError
from apps.generation.recipe.spec import Spec
from apps.generation.rows import answer_check
from apps.generation.rows.duplicate_filter import stored_table
from apps.similarity import thresholds
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
    """Measure of similarity."""

    TEXT = "text"
    """Runs of five characters in common (Jaccard, by MinHash)."""
    MEANING = "meaning"
    """The cosine of the texts' embeddings."""


CODES = {
    By.TEXT: ("near_duplicate", "seed_duplicate"),
    By.MEANING: ("near_meaning", "seed_meaning"),
}


class TooMany(DomainError):
    """More rows than can be compared. The message says how many can."""


@dataclass(frozen=True, slots=True)
class ComparisonPending:
    """Progress of a comparison that is not finished; the caller retries."""

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
        """Mask of the places that are rows of the job, not seed rows."""
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
        """Return masks of the rows that a threshold rejects and restores."""
        stays = np.ones(len(self.keys), dtype=bool) if step is None else self.outcomes.kept_at(step)
        movable = self.rows & ~self.fixed
        return movable & self.accepted & ~stays, self.rows & ~self.accepted & stays


def comparable_rows(batch_id: int, by: By) -> QuerySet[Item]:
    """The rows that this measure judges: what was rejected for another reason stays so."""
    accepted = Q(status=ItemStatus.ACCEPTED)
    rejected = Q(status=ItemStatus.REJECTED, code__in=CODES[by])
    return rows_of(batch_id).filter(accepted | rejected)


def free_text(spec: Spec, item: Item) -> str:
    return "\n".join(answer_check.free_texts_of(spec.recipe, item.current_output))


def load_seed_texts(stored: Sequence[int]) -> list[tuple[int, str]]:
    """The seed rows that have a text, each with its place in its table."""
    texts = [(at, text) for pk in stored for at, text in enumerate(stored_table(pk).texts)]
    return [(at, text) for at, text in texts if text.strip()]


def build_comparison(
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
