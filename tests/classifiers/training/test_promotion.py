"""Which thresholds a finished run gets, and the notes beside it."""

import numpy as np
import pytest
from django.contrib.auth.models import User

from apps.classifiers.evaluation.row_results import MapPoints, PredictedRows, RowResults
from apps.classifiers.evaluation.thresholds.decision import Thresholds
from apps.classifiers.models import Classifier, Run
from apps.classifiers.training.promotion import (
    choose_thresholds,
    held_back_notes,
    out_of_scope_notes,
    skipped_notes,
)
from tests.classifiers.training.label_quality.test_label_rules import PLAIN, rows

pytestmark = pytest.mark.django_db

LABELS = ["card", "rate", "hello"]


@pytest.fixture
def run(alice: User) -> Run:
    made = Classifier.objects.create(owner=alice, name="Topics")
    return Run.objects.create(classifier=made, number=1)


def predicted(count: int, score: float) -> PredictedRows:
    random = np.random.default_rng(count)
    logits = random.normal(score, 1, size=(count, 3)).astype(np.float32)
    return PredictedRows.from_logits(
        index=range(count),
        source=[0] * count,
        keys=range(count),
        truth=np.zeros(count, dtype=np.int64),
        logits=logits,
        temperature=1.0,
    )


def results(out_of_scope: int = 0) -> RowResults:
    return RowResults(
        train=predicted(400, 4),
        test=predicted(100, 4),
        out_of_scope=predicted(out_of_scope, -4),
        unlabelled=predicted(0, 0),
        map=MapPoints(),
    )


def test_choose_thresholds_without_a_choice_are_the_usual_ones(run: Run) -> None:
    found = choose_thresholds(run, results(), LABELS)
    assert (found.unsure, found.kept) == (0.5, 0.99)
    assert choose_thresholds(run, results(), LABELS[:2]).unsure == 0.6
    run.options = {"balanced": True}
    assert choose_thresholds(run, results(), LABELS).unsure == 0


def test_choose_thresholds_by_the_out_of_scope_rows(run: Run) -> None:
    assert choose_thresholds(run, results(60), LABELS).kept > 0.99


def test_choose_thresholds_keeps_what_a_person_chose(run: Run) -> None:
    run.classifier.options = {
        "gates": {"unsure": 0.7, "kept": 0.9, "labels": {"card": 0.8, "gone": 0.9}}
    }
    found = choose_thresholds(run, results(60), LABELS)
    assert (found.unsure, found.kept, found.by_label) == (0.7, 0.9, {"card": 0.8})


def test_held_back_notes_are_empty_without_a_live_version(run: Run) -> None:
    assert held_back_notes(run, results(), LABELS) == []


@pytest.mark.parametrize("pinned", [True, False])
def test_held_back_notes_are_empty_if_nothing_can_be_compared(run: Run, pinned: bool) -> None:
    Classifier.objects.update(current=run, pinned=pinned)  # its row results are on no disk
    assert held_back_notes(run, results(), LABELS) == []


def test_out_of_scope_notes_name_the_labels() -> None:
    given = rows(*PLAIN, ("zebra", "oos", False), ("quantum", "OOS", False))
    (note,) = out_of_scope_notes(given, Thresholds())
    assert "2 rows labelled out of scope (“OOS”, “oos”)" in note
    assert "too few to move the threshold" in note
    assert out_of_scope_notes(rows(*PLAIN), Thresholds()) == []


def test_out_of_scope_notes_say_when_they_chose() -> None:
    strange = [(f"zebra {number}", "oos", False) for number in range(12)]
    (note,) = out_of_scope_notes(rows(*PLAIN, *strange), Thresholds(kept=0.97))
    assert "Half of them chose the threshold" in note
    assert "3.0%" in note


def test_skipped_notes_count_the_rows() -> None:
    assert skipped_notes([]) == []
    (note,) = skipped_notes([{"row": "1"}, {"row": "2"}])
    assert note.startswith("2 rows are too long")
