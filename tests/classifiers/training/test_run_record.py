"""The JSON of a run: it can be stored, and its keys are those the pages read."""

import json

import numpy as np
import pytest

from apps.classifiers.evaluation.evaluate_run import RunEvaluation, evaluate
from apps.classifiers.training import run_record, trainer
from apps.classifiers.training.estimator import TrainerOptions
from apps.classifiers.training.label_quality.label_rules import encode_labels
from apps.classifiers.training.rows import RowVectors, TrainingRows
from tests.classifiers.training.label_quality.test_label_rules import rows
from tests.classifiers.training.test_trainer import clouds


@pytest.fixture(scope="module")
def evaluated() -> tuple[TrainingRows, trainer.Fit, RunEvaluation, list[int]]:
    """A run of 60 training and 20 test rows of two labels, evaluated without a database."""
    vectors, codes = clouds(2, 40, noise=1.2)
    names = ("card", "rate")
    given = rows(*((f"text {n}", names[code], n % 4 == 0) for n, code in enumerate(codes.tolist())))
    labels, all_codes = encode_labels(given)
    sides = RowVectors.of_rows(given, vectors)
    options = TrainerOptions()
    train = given.train
    fit = trainer.fit(sides.train, all_codes[train], given.groups[train], options=options)
    steps: list[int] = []
    evaluation = evaluate(
        given, labels, all_codes, sides, fit, options, report=lambda done, total: steps.append(done)
    )
    return given, fit, evaluation, steps


Evaluated = tuple[TrainingRows, trainer.Fit, RunEvaluation, list[int]]


def test_result_fields_survive_json(evaluated: Evaluated) -> None:
    fields = run_record.result_fields(evaluated[2])
    assert json.loads(json.dumps(fields)) == fields
    assert fields["metrics"]["rows"] == 20
    assert [entry["label"] for entry in fields["per_class"]] == ["card", "rate"]
    assert np.sum(fields["confusion"]) == 20
    assert fields["learning_curve"][-1]["accuracy"] == fields["metrics"]["accuracy"]


def test_evaluate_reports_every_step_once_in_order(evaluated: Evaluated) -> None:
    steps = evaluated[3]
    assert steps == sorted(steps)
    assert steps[-1] == 9


def test_evaluate_keeps_a_result_for_each_row(evaluated: Evaluated) -> None:
    given, fit, evaluation, _ = evaluated
    results = evaluation.row_results
    assert (len(results.train), len(results.test)) == (60, 20)
    assert (len(results.out_of_scope), len(results.unlabelled)) == (0, 0)
    assert results.test.correct.mean() == evaluation.report.metrics["accuracy"]
    assert results.train.predicted.tolist() == fit.out_of_fold.argmax(axis=1).tolist()
    assert len(results.map.points) == len(given.texts)


def test_evaluate_notes_that_test_rows_are_few(evaluated: Evaluated) -> None:
    assert any("20 test rows" in note for note in evaluated[2].notes)


def test_evaluate_ends_with_what_the_report_raises(evaluated: Evaluated) -> None:
    given, fit, _, _ = evaluated

    def cancel(done: int, total: int) -> None:
        raise KeyboardInterrupt

    labels, codes = encode_labels(given)
    none = np.zeros((0, 32), dtype=np.float32)
    vectors, _ = clouds(2, 40, noise=1.2)
    sides = RowVectors(vectors[given.train], vectors[given.test], none, none)
    with pytest.raises(KeyboardInterrupt):
        evaluate(given, labels, codes, sides, fit, TrainerOptions(), report=cancel)
