"""The rows of a run that a person should look at next, as one queue."""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.row_results import PredictedRows, RowResults
from apps.classifiers.models import ReviewReason
from apps.classifiers.training import trainer
from apps.classifiers.training.embed_rows import EmbeddedRows
from apps.classifiers.training.label_quality import label_errors

MOST_ERRORS = 200
MOST_UNCERTAIN = 100
SHOWN_TEXT = 300


class Suggestion(TypedDict):
    index: int
    """The row's place in the dataset."""
    reason: str
    text: str
    label: str
    suggested: list[str]
    """Labels it could have, the likeliest first."""
    score: float
    """Of a label error: the probability of its label; else the margin between the best two."""


def build_review_queue(data: EmbeddedRows, fit: trainer.Fit, known: RowResults) -> list[Suggestion]:
    """Likely label errors first, then rows it is unsure of that differ; never a test row."""
    train = np.flatnonzero(data.rows.train)
    suspect, better, given = label_errors.find_label_errors(
        fit.out_of_fold, data.codes[data.rows.train], temperature=fit.model.temperature
    )
    errors = label_errors.most_suspicious(suspect, given, limit=MOST_ERRORS)
    queue = [
        _suggestion(
            data, int(train[at]), ReviewReason.LABEL_ERROR, [int(better[at])], float(given[at])
        )
        for at in errors.tolist()
    ]
    # Labelling rows that have no label teaches more than looking at labelled ones again.
    pool = np.flatnonzero(data.rows.unlabelled)
    queue += _uncertain(
        data, pool, known.unlabelled, data.vectors.unlabelled, ReviewReason.UNLABELLED
    )
    taken = {entry["index"] for entry in queue}
    again = _uncertain(data, train, known.train, data.vectors.train, ReviewReason.UNCERTAIN)
    return queue + [entry for entry in again if entry["index"] not in taken]


def _uncertain(
    data: EmbeddedRows,
    places: NDArray[np.int64],
    side: PredictedRows,
    vectors: NDArray[np.float32],
    reason: ReviewReason,
) -> list[Suggestion]:
    chosen = label_errors.select_diverse_uncertain(side.margin, vectors, limit=MOST_UNCERTAIN)
    return [
        _suggestion(
            data, int(places[at]), reason, [int(side.predicted[at])], float(side.margin[at])
        )
        for at in chosen.tolist()
    ]


def _suggestion(
    data: EmbeddedRows, place: int, reason: ReviewReason, suggested: list[int], score: float
) -> Suggestion:
    return Suggestion(
        index=data.rows.indices[place],
        reason=reason.value,
        text=data.rows.texts[place][:SHOWN_TEXT],
        label=data.rows.labels[place],
        suggested=[data.labels[code] for code in suggested],
        score=score,
    )
