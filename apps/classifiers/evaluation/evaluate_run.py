"""A run judged: on rows it never saw, row by row, and against what would flatter it. No database.

`evaluation` knows the measures; here they are taken of a run's own rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation import confused_pairs
from apps.classifiers.evaluation.calibration import ENOUGH_MISTAKES
from apps.classifiers.evaluation.familiarity import Familiarity, fit_familiarity
from apps.classifiers.evaluation.leaks import find_leaks
from apps.classifiers.evaluation.map_projection import place_on_map
from apps.classifiers.evaluation.row_results import PredictedRows, RowResults
from apps.classifiers.evaluation.row_texts import SHOWN_TEXT, row_key
from apps.classifiers.evaluation.statistics import metrics
from apps.classifiers.run_results import ConfusedTexts, CurvePoint, Leaks
from apps.classifiers.training import estimator, trainer
from apps.classifiers.training.learning_curve import SHARES, learning_curve
from apps.classifiers.training.rows import RowVectors, TrainingRows

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]
ReportProgress = Callable[[int, int], None]

STEPS = 4 + len(SHARES)
# Share of copies from which on the naive score is worked out too: it costs five more fits.
NAIVE_SCORE_FROM = 0.005


@dataclass(frozen=True, slots=True)
class RunEvaluation:
    report: metrics.ClassificationReport
    confused_pairs: list[ConfusedTexts]
    row_results: RowResults
    familiarity: Familiarity
    leaks: Leaks
    learning_curve: list[CurvePoint]
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
    """Measure a run whose model is fitted.

    Args:
        codes: (rows,), each row's label as a number, -1 without one.
        report: called with (done, total) steps; what it raises ends the work.
    """
    train = rows.train
    truth = codes[rows.test]
    found, confused = _measure_test_rows(rows, labels, truth, vectors, fit)
    report(1, STEPS)
    known, familiarity = collect_row_results(rows, codes, vectors, fit, seed=options.seed)
    report(2, STEPS)
    leaks = find_leaks(rows, labels, codes, vectors, known, seed=options.seed)
    report(3, STEPS)
    _add_naive_accuracy(leaks, vectors, codes[train], fit, options, lambda: report(3, STEPS))
    report(4, STEPS)
    at_point = partial(_report_point, report)
    curve = learning_curve(vectors, codes[train], truth, len(labels), fit, options, report=at_point)
    return RunEvaluation(
        found,
        confused,
        known,
        familiarity,
        leaks,
        curve,
        _notes(leaks, known, found, fit),
    )


def _measure_test_rows(
    rows: TrainingRows, labels: list[str], truth: Codes, vectors: RowVectors, fit: trainer.Fit
) -> tuple[metrics.ClassificationReport, list[ConfusedTexts]]:
    logits = fit.model.logits(vectors.test)
    said = fit.model.choose(logits)
    found = metrics.classification_report(
        logits, truth, labels, temperature=fit.model.temperature, predicted=said, unseen=rows.unseen
    )
    return found, with_texts(confused_pairs.most_confused_pairs(truth, said, labels), rows)


def _report_point(report: ReportProgress, step: int) -> None:
    report(4 + step, STEPS)


def _add_naive_accuracy(
    leaks: Leaks,
    vectors: RowVectors,
    codes: Codes,
    fit: trainer.Fit,
    options: estimator.TrainerOptions,
    check: Callable[[], None],
) -> None:
    """Measure what copies among the training rows flatter, where there are enough of them."""
    if leaks.train_copies < NAIVE_SCORE_FROM * len(codes):
        return
    leaks.grouped_accuracy = next(s.accuracy for s in fit.path if fit.C == s.C)
    leaks.naive_accuracy = trainer.naive_accuracy(
        vectors.train, codes, C=fit.C, options=options, check=check
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


def with_texts(
    confused: list[confused_pairs.ConfusedPair], rows: TrainingRows
) -> list[ConfusedTexts]:
    """Add the texts of some rows to each pair."""
    places = np.flatnonzero(rows.test)
    return [
        ConfusedTexts(
            pair.label,
            pair.predicted,
            pair.count,
            pair.support,
            [rows.texts[places[row]][:SHOWN_TEXT] for row in pair.rows],
        )
        for pair in confused
    ]


def _notes(
    leaks: Leaks, known: RowResults, found: metrics.ClassificationReport, fit: trainer.Fit
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
    if leaks.test_exact:
        notes.append(
            f"{leaks.test_exact:,} of the {leaks.test_rows:,} test rows are also in the "
            "training data, so the score is inflated."
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
            f"Only {len(known.test):,} test rows: the true accuracy may be anywhere from "
            f"{found.metrics['accuracy_low']:.0%} to {found.metrics['accuracy_high']:.0%}."
        )
    return notes
