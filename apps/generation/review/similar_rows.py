"""Looking through a job's rows: which is next, and what it resembles."""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from apps.batch.models import Item, ItemStatus
from apps.batch.services import rows_of
from apps.generation.exports.row_fields import full_row, is_complete
from apps.generation.models import Job
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.recipe.spec import Spec
from apps.generation.rows import answer_check
from apps.similarity.minhash import HASHES, Signature, jaccard_similarity, minhash_signature
from apps.similarity.word_diff import Stretch, different_words

LOOKED_UP = 20_000  # by their signatures: 5 MB
COMPARED = 200  # by their texts
NEIGHBOURS = 3
LEAST_SHARE = 0.05
CLOSE_SHARE = 0.3  # below, nearly every word differs
SAMPLE = 1_000
SHOWN = 1_200  # characters of a similar row
KEPT_FROM = 2_000  # accepted rows
KEPT_SECONDS = 60


@dataclass(frozen=True)
class RowField:
    """A field of a row as the page shows it."""

    name: str
    value: str
    original: str
    editable: bool
    written: bool
    """Written by the model, not sampled."""

    @property
    def changed(self) -> bool:
        return self.value != self.original


@dataclass(frozen=True)
class SimilarRow:
    index: int
    text: str
    share: float
    stretches: list[Stretch]
    """The text, cut by which words differ from the row it is compared with, if it is close."""

    @property
    def is_close(self) -> bool:
        return self.share >= CLOSE_SHARE


@dataclass(frozen=True)
class SimilarRows:
    rows: list[SimilarRow]
    """The most similar first."""
    among: int
    """How many accepted rows were looked at."""


def review_queue(job: Job, status: str, *, unseen: bool) -> Any:
    """The rows to look through, in order."""
    items = rows_of(job.batch_id).filter(status=status).order_by("index")
    return items.filter(reviewed=False) if unseen else items


def row_fields(spec: Spec, item: Item) -> list[RowField]:
    original = item.output if isinstance(item.output, dict) else {}
    whole = is_complete(spec, item)
    by_model = {name for column in spec.recipe.written for name in column.names}
    return [
        RowField(
            name,
            to_text(value),
            to_text(original.get(name, value)),
            editable=name in original and whole,
            written=name in by_model,
        )
        for name, value in full_row(spec, item).items()
    ]


def find_similar_rows(spec: Spec, item: Item) -> SimilarRows:
    """The accepted rows it has most in common with.

    Of rows whose signature is kept (comparing near duplicates keeps it) the likeliest are looked
    up by that; of the others, some by chance.
    """
    text = _text_of(spec, item)
    signature = minhash_signature(text)
    if signature is None:
        return SimilarRows([], 0)
    others = (
        rows_of(item.batch_id)
        .filter(status=ItemStatus.ACCEPTED)
        .exclude(pk=item.pk)
        .exclude(fingerprint=None)
        .order_by("fingerprint")  # a hash: by chance, straight from the index
    )
    keys, signatures = _signatures(item.batch_id)
    unknown = list(others.filter(minhash=None).values_list("pk", flat=True)[:COMPARED])
    read = others.filter(pk__in=[*_most_similar(signature, keys, signatures), *unknown])
    found = []
    for other in read.only("index", "output", "edited"):
        other_text = _text_of(spec, other)
        found.append((jaccard_similarity(text, other_text), other.index, other_text))
    found.sort(reverse=True)
    alike = [
        SimilarRow(index, other, share, _compare(other[:SHOWN], text, share))
        for share, index, other in found[:NEIGHBOURS]
        if share > LEAST_SHARE
    ]
    own = keys.count(item.pk)
    return SimilarRows(alike, len(keys) - own + len(unknown))


def _compare(other: str, text: str, share: float) -> list[Stretch]:
    return different_words(other, text) if share >= CLOSE_SHARE else [Stretch(other, False)]


def _signatures(batch_id: int) -> tuple[list[int], NDArray[np.uint16]]:
    """The signatures of the accepted rows that have one, with the keys of the rows.

    Those of a large job are kept for a minute: reading 20,000 takes longer than comparing them. A
    row that is no longer accepted is then left out when it is read.
    """
    accepted = rows_of(batch_id).filter(status=ItemStatus.ACCEPTED).count()
    if accepted <= KEPT_FROM:
        return _read_signatures(batch_id)
    return _kept_signatures(batch_id, int(time.time() // KEPT_SECONDS))


@lru_cache(maxsize=2)
def _kept_signatures(batch_id: int, moment: int) -> tuple[list[int], NDArray[np.uint16]]:
    return _read_signatures(batch_id)


def _read_signatures(batch_id: int) -> tuple[list[int], NDArray[np.uint16]]:
    rows = rows_of(batch_id).filter(status=ItemStatus.ACCEPTED).exclude(fingerprint=None)
    found = rows.exclude(minhash=None).order_by("fingerprint").values_list("pk", "minhash")
    kept = [(pk, bytes(minhash)) for pk, minhash in found[:LOOKED_UP] if minhash]
    array = np.frombuffer(b"".join(minhash for _, minhash in kept), dtype=np.uint16)
    return [pk for pk, _ in kept], array.reshape(-1, HASHES)


def _most_similar(
    signature: Signature, keys: list[int], signatures: NDArray[np.uint16]
) -> list[int]:
    """The keys of the signatures that agree with this one most."""
    if not keys:
        return []
    shares = (signatures == signature).mean(axis=1)
    return [keys[at] for at in np.argsort(-shares, kind="stable")[: 4 * NEIGHBOURS].tolist()]


def _text_of(spec: Spec, item: Item) -> str:
    return "\n".join(answer_check.free_texts_of(spec.recipe, item.current_output))


def sample_rows(job: Job, size: int = SAMPLE) -> list[Item]:
    """Draw accepted rows by chance, in their order."""
    chosen = sampled_from(job).order_by("fingerprint")
    return sorted(
        chosen.only("index", "input", "output", "edited")[:size], key=lambda item: item.index
    )


def sampled_from(job: Job) -> QuerySet[Item]:
    """Return the rows that a sample is drawn from: accepted, with free text."""
    accepted = rows_of(job.batch_id).filter(status=ItemStatus.ACCEPTED)
    return accepted.exclude(fingerprint=None)
