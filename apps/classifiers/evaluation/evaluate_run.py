"""A run judged: on rows it never saw, row by row, and against what would flatter it. No database.

`evaluation` knows the measures; here they are taken of a run's own rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation import metrics
from apps.classifiers.evaluation.calibration import ENOUGH_MISTAKES
from apps.classifiers.evaluation.familiarity import Familiarity, fit_familiarity
<<<<<<< HEAD
from apps.classifiers.evaluation.leaks import find_leaks
from apps.classifiers.evaluation.map_projection import place_on_map
from apps.classifiers.evaluation.row_results import PredictedRows, RowResults, row_key
from apps.classifiers.evaluation.row_texts import SHOWN_TEXT
from apps.classifiers.training import estimator, trainer
from apps.classifiers.training.learning_curve import SHARES, learning_curve
from apps.classifiers.training.rows import RowVectors, TrainingRows
=======
from apps.classifiers.evaluation.row_results import MapPoints, PredictedRows, RowResults, row_key
from apps.classifiers.training import trainer
from apps.classifiers.training.rows import TrainingRows
from apps.embeddings.services import take_rows
from apps.similarity.cosine import MAX_COMPARISONS, NEAR, VERY_NEAR, find_nearest
>>>>>>> 14ae398 (Give embeddings a door: services, errors, and the field's names inside)

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]
ReportProgress = Callable[[int, int], None]

STEPS = 4 + len(SHARES)
# Share of copies from which on the naive score is worked out too: it costs five more fits.
NAIVE_SCORE_FROM = 0.005


@dataclass(frozen=True, slots=True)
class RunEvaluation:
    report: metrics.ClassificationReport
    confused_pairs: list[dict[str, Any]]
    row_results: RowResults
    familiarity: Familiarity
    leaks: dict[str, Any]
    learning_curve: list[dict[str, Any]]
    notes: list[str]


def evaluate(
    rows: TrainingRows,
    labels: list[str],
    codes: Codes,
    vectors: RowVectors,
    fit: trainer.Fit,
    options: estimator.TrainerOptions,
    *,
    report: ReportProgress = lambda done, total: None,
) -> RunEvaluation:
    """Everything that is known of a run once its model is there.

    Args:
        codes: (rows,), each row's label as a number, -1 without one.
        report: called with (done, total) steps; what it raises ends the work.
    """
    train, test = rows.train, rows.test
    logits, truth = fit.model.logits(vectors.test), codes[test]
    said = fit.model.choose(logits)
    found = metrics.classification_report(
        logits, truth, labels, temperature=fit.model.temperature, predicted=said, unseen=rows.unseen
    )
    confused = metrics.most_confused_pairs(truth, said, labels)
    report(1, STEPS)
    known, familiarity = collect_row_results(rows, codes, vectors, fit, seed=options.seed)
    report(2, STEPS)
    copied = find_leaks(rows, labels, codes, vectors, known, seed=options.seed)
    report(3, STEPS)
    if copied["train_copies"] >= NAIVE_SCORE_FROM * train.sum():
        copied["grouped_accuracy"] = next(s.accuracy for s in fit.path if fit.C == s.C)
        copied["naive_accuracy"] = trainer.naive_accuracy(
            vectors.train,
            codes[train],
            C=fit.C,
            options=options,
            check=lambda: report(3, STEPS),
        )
    report(4, STEPS)
    curve = learning_curve(
        vectors,
        codes[train],
        truth,
        len(labels),
        fit,
        options,
        report=lambda step: report(4 + step, STEPS),
    )
    return RunEvaluation(
        found,
        with_texts(confused, rows),
        known,
        familiarity,
        copied,
        curve,
        _notes(copied, known, found, fit),
    )


def collect_row_results(
    rows: TrainingRows, codes: Codes, vectors: RowVectors, fit: trainer.Fit, *, seed: int = 0
) -> tuple[RowResults, Familiarity]:
    model = fit.model
    train = rows.train
    familiarity, among_themselves = fit_familiarity(
        vectors.train, codes[train], rows.groups[train], fit.out_of_fold.max(axis=1), seed=seed
    )

    def side(keep: NDArray[np.bool_], given: Floats) -> PredictedRows:
        logits = model.logits(given)
        return made(keep, logits, familiarity.score(given, logits.max(axis=1)))

    def made(keep: NDArray[np.bool_], logits: Floats, familiar: Floats) -> PredictedRows:
        places = np.flatnonzero(keep).tolist()
        return PredictedRows.from_logits(
            index=[rows.indices[place] for place in places],
            source=[rows.sources[place] for place in places],
            keys=[row_key(rows.texts[place]) for place in places],
            truth=codes[keep],
            logits=logits,
            temperature=model.temperature,
            favour=model.favour if model.favour.any() else None,
            familiarity=familiar,
        )

    known = RowResults(
        train=made(train, fit.out_of_fold, among_themselves),
        test=side(rows.test, vectors.test),
        out_of_scope=side(rows.out_of_scope, vectors.out_of_scope),
        unlabelled=side(rows.unlabelled, vectors.unlabelled),
        map=place_on_map(vectors.sides),
    )
    return known, familiarity


<<<<<<< HEAD
=======
def place_on_map(vectors: RowVectors, *, seed: int = 0) -> MapPoints:
    """At most MAP_POINTS rows on a plane, drawn from all sides alike."""
    sides = [vectors.train, vectors.test, vectors.out_of_scope, vectors.unlabelled]
    counts = [len(side) for side in sides]
    side = np.repeat(np.arange(len(sides)), counts)
    row = np.concatenate([np.arange(count) for count in counts])
    if len(side) > MAP_POINTS:
        keep = np.sort(np.random.default_rng(seed).choice(len(side), MAP_POINTS, replace=False))
        side, row = side[keep], row[keep]
    chosen = np.concatenate([sides[at][row[side == at]] for at in range(len(sides))])
    points, explained = map_projection.project_to_plane(chosen, seed=seed)
    return MapPoints(points, side.astype(np.int8), row.astype(np.int32), explained)


def find_leaks(
    rows: TrainingRows,
    labels: list[str],
    codes: Codes,
    vectors: RowVectors,
    known: RowResults,
    *,
    seed: int,
) -> dict[str, Any]:
    """Copies, exact and near, between the sides, and what they are worth in accuracy."""
    train, test = rows.labelled & ~rows.test, rows.test
    groups = rows.groups
    exact = np.isin(groups[test], groups[train])
    near = find_nearest(vectors.test, vectors.train, max_comparisons=MAX_COMPARISONS, seed=seed)
    copied = exact.copy()
    copied[near.rows[near.is_near]] = True
    clean = ~copied
    right = known.test.correct
    test_places, train_places = np.flatnonzero(test), np.flatnonzero(train)
    other = codes[test][near.rows] != codes[train][near.partner]
    order = np.lexsort((-near.cosine, ~other))
    shown = order[near.is_near[order]][:PAIRS_KEPT]
    labelled = rows.labelled
    return {
        "copies": leaks.count_duplicates(groups[labelled]),
        "train_copies": leaks.count_duplicates(groups[train]),
        "conflicts": leaks.count_label_conflicts(groups[labelled], codes[labelled]),
        "test_rows": int(test.sum()),
        "test_exact": int(exact.sum()),
        "test_near": int((near.cosine >= NEAR).sum()),
        "test_very_near": int((near.cosine >= VERY_NEAR).sum()),
        "test_near_other_label": int((near.is_near & other).sum()),
        "compared": len(near.rows),
        "threshold": NEAR,
        "accuracy_all": float(right.mean()),
        "clean_rows": int(clean.sum()),
        "accuracy_clean": float(right[clean].mean()) if clean.any() else None,
        "pairs": [
            _pair(
                rows,
                test_places[near.rows[place]],
                train_places[near.partner[place]],
                float(near.cosine[place]),
            )
            for place in shown.tolist()
        ],
    }


def _pair(rows: TrainingRows, test: int, train: int, cosine: float) -> dict[str, Any]:
    return {
        "cosine": min(1.0, cosine),
        "exact": bool(rows.groups[test] == rows.groups[train]),
        "test": _cited(rows, test),
        "train": _cited(rows, train),
    }


def _cited(rows: TrainingRows, place: int) -> dict[str, Any]:
    return {
        "row": rows.origins[place],
        "label": rows.labels[place],
        "text": rows.texts[place][:SHOWN_TEXT],
    }


def _right_after(
    part: NDArray[np.bool_],
    vectors: RowVectors,
    codes: Codes,
    truth: Codes,
    count: int,
    fit: trainer.Fit,
    options: trainer.Options,
) -> NDArray[np.bool_]:
    """Which test rows are right after training on a part of the rows; the last part is all."""
    model = fit.model
    if not part.all():
        given = take_rows(vectors.train, part)
        model = trainer.fit_once(given, codes[part], count, C=fit.C, options=options)
    right: NDArray[np.bool_] = model.choose(model.logits(vectors.test)) == truth
    return right


def _point(rows: int, right: NDArray[np.bool_], before: NDArray[np.bool_] | None) -> dict[str, Any]:
    """One point of the learning curve, and whether the step to it is more than luck."""
    hits = int(right.sum())
    low, high = metrics.wilson_interval(hits, len(right))
    point = {"rows": rows, "accuracy": hits / len(right), "low": low, "high": high}
    if before is not None:
        step = mcnemar.compare_paired(before, right)
        point |= {"p_value": step.p_value, "gain_low": step.low, "gain_high": step.high}
    return point


>>>>>>> 14ae398 (Give embeddings a door: services, errors, and the field's names inside)
def with_texts(confused: list[metrics.ConfusedPair], rows: TrainingRows) -> list[dict[str, Any]]:
    places = np.flatnonzero(rows.test)
    return [
        {
            "label": pair["label"],
            "predicted": pair["predicted"],
            "count": pair["count"],
            "support": pair["support"],
            "texts": [rows.texts[places[row]][:SHOWN_TEXT] for row in pair["rows"]],
        }
        for pair in confused
    ]


def _notes(
    copied: dict[str, Any], known: RowResults, found: metrics.ClassificationReport, fit: trainer.Fit
) -> list[str]:
    notes = []
    if fit.mistakes < ENOUGH_MISTAKES:
        notes.append(
            f"Cross-validation got {fit.mistakes:,} of {len(known.train):,} training rows wrong: "
            "too few mistakes to calibrate on. Confidence is kept cautious; use it to rank texts, "
            "not as a probability."
        )
    elif fit.temperature_at_bound:
        notes.append(
            "On rows it has not seen, its confidence says nothing about whether it is right. "
            "Check the labels, or try another embedding model."
        )
    if copied["test_exact"]:
        notes.append(
            f"{copied['test_exact']:,} of the {copied['test_rows']:,} test rows also occur in the "
            "training rows: the score is that much too kind."
        )
    untested = [entry["label"] for entry in found.per_class if not entry["support"]]
    if untested:
        names = ", ".join(f"“{name}”" for name in untested[:5])
        more = f" and {len(untested) - 5:,} more" if len(untested) > 5 else ""
        notes.append(
            f"{len(untested):,} of {len(found.per_class):,} labels have no test row "
            f"({names}{more}): how well they are found is not known, and macro F1 leaves out those "
            "that no other text was taken for."
        )
    if len(known.test) < 100:
        notes.append(
            f"{len(known.test):,} test rows are few: the true accuracy may lie anywhere from "
            f"{found.metrics['accuracy_low']:.0%} to {found.metrics['accuracy_high']:.0%}."
        )
    return notes
