"""The queue of rows that a person should look at next."""

from typing import cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.classifiers.evaluation.row_results import MapPoints, PredictedRows, RowResults
from apps.classifiers.evaluation.statistics.metrics import Codes, Floats
from apps.classifiers.models import ReviewReason
from apps.classifiers.training.embed_rows import EmbeddedRows
from apps.classifiers.training.estimator import Model
from apps.classifiers.training.label_quality.review_queue import SHOWN_TEXT, build_review_queue
from apps.classifiers.training.rows import RowVectors, TrainingRows
from apps.classifiers.training.trainer import Fit
from apps.embeddings.services import Embedder

LABELS = ["card", "rate"]
NO_MAP = MapPoints(
    np.zeros((0, 2), dtype=np.float32), np.zeros(0, dtype=np.int8), np.zeros(0, dtype=np.int32)
)


def predicted(codes: Codes, logits: Floats) -> PredictedRows:
    places = list(range(len(codes)))
    return PredictedRows.from_logits(
        index=places,
        source=[0] * len(places),
        keys=places,
        truth=codes,
        logits=logits,
        temperature=1.0,
    )


@given(
    st.lists(st.sampled_from([*LABELS, ""]), min_size=4, max_size=30),
    st.integers(0, 2**16),
)
@settings(max_examples=40)
def test_queue_has_each_row_once_and_never_a_test_row(labels: list[str], seed: int) -> None:
    labels = [*LABELS, *labels]
    random = np.random.default_rng(seed)
    test = random.random(len(labels)) < 0.3
    test[:2] = False
    rows = TrainingRows(
        texts=[f"{number} " + "x" * 400 for number in range(len(labels))],
        labels=labels,
        origins=[""] * len(labels),
        indices=[10 * number for number in range(len(labels))],
        splits=["test" if is_test else "train" for is_test in test],
        sources=[0] * len(labels),
        test=test,
    )
    codes = np.asarray([LABELS.index(label) if label else -1 for label in labels])
    logits = random.normal(scale=4, size=(len(labels), 2)).astype(np.float32)
    vectors = random.normal(size=(len(labels), 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sides = (rows.train, rows.labelled & test, rows.out_of_scope, rows.unlabelled)
    train, judged, strange, blank = (predicted(codes[side], logits[side]) for side in sides)
    known = RowResults(train, judged, strange, blank, NO_MAP)
    data = EmbeddedRows(
        rows,
        LABELS,
        codes,
        RowVectors(*(vectors[side] for side in sides)),
        [],
        cast(Embedder, None),
    )
    zeros = np.zeros(2, dtype=np.float32)
    model = Model(np.zeros((2, 3), dtype=np.float32), zeros, 1.0, zeros)
    queue = build_review_queue(data, Fit(model, 1.0, (), logits[rows.train], True, 0), known)

    assert len({entry["index"] for entry in queue}) == len(queue)
    for entry in queue:
        place = entry["index"] // 10
        assert not test[place]
        assert (entry["label"], len(entry["text"])) == (labels[place], SHOWN_TEXT)
        assert (entry["reason"] == ReviewReason.UNLABELLED) == (not labels[place])
        assert set(entry["suggested"]) <= set(LABELS)
    reasons = [entry["reason"] for entry in queue]
    assert reasons == sorted(
        reasons,
        key=[ReviewReason.LABEL_ERROR, ReviewReason.UNLABELLED, ReviewReason.UNCERTAIN].index,  # type: ignore[arg-type]
    )
    errors = [entry["score"] for entry in queue if entry["reason"] == ReviewReason.LABEL_ERROR]
    assert errors == sorted(errors)
