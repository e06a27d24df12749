"""The two gates on rows whose answer is known."""

import json
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.classifiers.evaluation.row_results import PredictedRows
from apps.classifiers.evaluation.thresholds import decision, outcomes, score_limit, tuning
from apps.classifiers.evaluation.thresholds.decision import Refusal, Thresholds

SURE = np.asarray([0.9, 0.8, 0.4, 0.3], dtype=np.float32)
LOGITS = np.asarray([5.0, 1.0, 4.0, 0.5], dtype=np.float32)
RIGHT = np.asarray([True, False, True, False])


@pytest.mark.parametrize(
    ("confidence", "max_logit", "gate"),
    [
        (0.9, 5.0, Refusal.NOTHING),
        (0.4, 5.0, Refusal.UNSURE),
        (0.9, 1.0, Refusal.NONE_OF_THESE),
        (0.4, 1.0, Refusal.NONE_OF_THESE),  # what is like nothing is not merely between two labels
        (0.5, 2.0, Refusal.NOTHING),
    ],
)
def test_decide_gives_the_reason_for_no_answer(
    confidence: float, max_logit: float, gate: Refusal
) -> None:
    assert Thresholds(0.5, 0.99, 2.0).decide(confidence, max_logit) == gate


def test_a_label_with_its_own_threshold_is_decided_by_it() -> None:
    chosen = Thresholds(0.5, 0.99, 2.0, by_label={"spam": 0.9, "ham": 0.1})
    found = [chosen.decide(0.6, 5.0, label) for label in ("spam", "ham", "other")]
    assert found == [Refusal.UNSURE, Refusal.NOTHING, Refusal.NOTHING]
    assert chosen.decide(0.2, 5.0, "ham") == Refusal.NOTHING
    assert chosen.decide(0.95, 1.0, "spam") == Refusal.NONE_OF_THESE


def test_outcomes_count_answered_right_unsure_and_none() -> None:
    found = outcomes.apply_thresholds(
        SURE,
        LOGITS,
        RIGHT,
        Thresholds(0.5, 0.9, 0.8),
        out_of_scope_confidence=np.asarray([0.9, 0.2], dtype=np.float32),
        out_of_scope_score=np.asarray([3.0, 3.0], dtype=np.float32),
    )
    assert (found.answered, found.right, found.unsure, found.none) == (2, 1, 1, 1)
    assert (found.coverage, found.precision, found.recall) == (0.5, 0.5, 0.5)


def test_open_gates_let_everything_through() -> None:
    found = outcomes.apply_thresholds(
        SURE, LOGITS, RIGHT, Thresholds(0.0, 1.0, score_limit.score_limit(LOGITS, 1.0))
    )
    assert (found.coverage, found.precision, found.recall) == (1.0, 0.5, None)


def test_gates_that_let_nothing_through_have_no_precision() -> None:
    assert (
        outcomes.apply_thresholds(SURE, LOGITS, RIGHT, Thresholds(1.0, 0.9, 9.0)).precision is None
    )


def test_the_threshold_keeps_the_share_it_says() -> None:
    logits = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    for kept in (0.9, 0.99):
        assert (logits >= score_limit.score_limit(logits, kept)).mean() == pytest.approx(
            kept, abs=0.001
        )


@pytest.mark.parametrize("rows", [8, 20, 60, 150, 1000])
@pytest.mark.parametrize("kept", [0.95, 0.99])
def test_threshold_keeps_its_share_of_new_texts(rows: int, kept: float) -> None:
    """On average over classifiers, however few rows there were to measure by."""
    random = np.random.default_rng(rows)
    lost = []
    for _ in range(400):
        limit = score_limit.score_limit(random.normal(size=rows).astype(np.float32), kept)
        lost.append((random.normal(size=500) < limit).mean())
    assert np.mean(lost) <= (1 - kept) * 1.15 + 0.001


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.floats(-1e4, 1e4, width=32), min_size=2, max_size=300),
    kept=st.floats(0.8, 1),
)
def test_whatever_the_scores_no_more_than_the_share_are_below(
    scores: list[float], kept: float
) -> None:
    values = np.asarray(scores, dtype=np.float32)
    limit = score_limit.score_limit(values, kept)
    assert (values < limit).mean() <= 1 - kept + 1e-9
    assert limit <= score_limit.score_limit(values, max(0.8, kept - 0.05))


def test_students_quantiles_are_scipys() -> None:
    for share, freedom, exact in ((0.01, 4, 3.7469), (0.01, 19, 2.5395), (0.05, 7, 1.8946)):
        assert score_limit.student_quantile(share, freedom) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize(("share", "rows"), [(0.1, 20), (0.03, 40), (0.01, 50)])
def test_tolerance_limits_hold_99_times_of_100(share: float, rows: int) -> None:
    random = np.random.default_rng(rows)
    drawn = random.normal(size=(4000, rows))
    limits = drawn.mean(axis=1) - score_limit.tolerance_factor(share, rows) * drawn.std(
        axis=1, ddof=1
    )
    below = np.asarray([NormalDist().cdf(limit) for limit in limits])
    assert (below <= share).mean() == pytest.approx(0.99, abs=0.006)


def test_a_handful_of_rows_makes_no_threshold() -> None:
    assert score_limit.tolerance_factor(0.03, 3) == float("inf")


def out_of_scope(count: int, mean: float) -> tuple[decision.Floats, decision.Floats]:
    random = np.random.default_rng(count)
    inside = random.normal(4, 1, 2000).astype(np.float32)
    return inside, random.normal(mean, 1, count).astype(np.float32)


@pytest.mark.parametrize("count", range(6))
@pytest.mark.parametrize("mean", [-4, 1, 4])
def test_a_handful_of_strangers_moves_nothing(count: int, mean: float) -> None:
    assert tuning.best_kept_share(*out_of_scope(count, mean)) == decision.KEPT_SHARE
    assert not tuning.tuning_rows(count).any()


@settings(max_examples=30, deadline=None)
@given(count=st.integers(0, 200), mean=st.floats(-8, 8))
def test_strangers_cost_no_more_than_they_may(count: int, mean: float) -> None:
    inside, outside = out_of_scope(count, mean)
    kept = tuning.best_kept_share(inside, outside)
    least = 0.99 if count < 10 else 0.97 if count < 50 else 0.95
    assert least <= kept <= 0.995
    assert (inside < score_limit.score_limit(inside, kept)).mean() <= 1 - least


def test_many_strangers_choose_how_many_to_keep() -> None:
    assert tuning.best_kept_share(*out_of_scope(200, -4)) > 0.99
    assert tuning.best_kept_share(*out_of_scope(200, 2)) == 0.95
    assert tuning.best_kept_share(*out_of_scope(30, 2)) < 0.98
    inside, _ = out_of_scope(1, 0)
    assert outcomes.auroc(inside, inside) == pytest.approx(0.5)
    assert outcomes.auroc(inside, inside - 100) == 1.0


def test_those_that_choose_do_not_tell() -> None:
    chosen = tuning.tuning_rows(21)
    assert chosen.sum() == 10
    assert chosen.tolist() == tuning.tuning_rows(21).tolist()


@pytest.mark.parametrize(
    ("labels", "balanced", "least"), [(2, False, 0.6), (3, False, 0.5), (2, True, 0.0)]
)
def test_unsure_depends_on_how_many_labels_there_are(
    labels: int, balanced: bool, least: float
) -> None:
    assert decision.default_min_confidence(labels, balanced=balanced) == least


def test_they_survive_json() -> None:
    for chosen in (
        Thresholds(0.4, 0.97, 1.5),
        Thresholds(0.4, 1.0, -np.inf),
        Thresholds(0.4, 0.97, -np.inf, -2.5),
        Thresholds(0.4, 1.0, -np.inf, -np.inf),
        Thresholds(0.4, 1.0, by_label={"spam": 0.9}),
    ):
        assert Thresholds.read(json.loads(json.dumps(chosen.as_dict()))) == chosen
    assert Thresholds.read({}) == Thresholds()


def test_those_of_an_older_run_go_by_its_logit() -> None:
    old = Thresholds.read({"unsure": 0.5, "kept": 0.99, "max_logit": 2.0})
    assert old.decide(0.9, 1.9) == Refusal.NONE_OF_THESE
    assert old.decide(0.9, 2.1) == Refusal.NOTHING
    new = Thresholds.read({"unsure": 0.5, "kept": 0.99, "max_logit": 2.0, "familiar": -3.0})
    assert new.decide(0.9, -2.9) == Refusal.NOTHING
    assert new.decide(0.9, -3.1) == Refusal.NONE_OF_THESE


def test_label_outcomes_count_what_gets_each_label() -> None:
    rows = PredictedRows.from_logits(
        index=range(6),
        source=[0] * 6,
        keys=range(6),
        truth=np.asarray([0, 0, 0, 1, 1, 1]),
        logits=np.asarray([[3, 0], [1, 0], [0, 1], [0, 3], [0, 3], [2, 0]], dtype=np.float32),
        temperature=1.0,
    )
    ham, spam = outcomes.label_outcomes(rows, ["ham", "spam"], Thresholds(0, 1))
    assert (ham.label, ham.precision, ham.recall) == ("ham", 2 / 3, 2 / 3)
    assert (spam.precision, spam.recall) == (2 / 3, 2 / 3)
    strict = Thresholds(0, 1, by_label={"spam": 0.9})
    spam, ham = outcomes.label_outcomes(rows, ["ham", "spam"], strict)
    assert (spam.label, spam.own, spam.precision, spam.recall) == ("spam", True, 1.0, 2 / 3)
    (never, *_) = outcomes.label_outcomes(rows, ["ham", "spam"], Thresholds(1, 1))
    assert (never.precision, never.recall) == (None, 0.0)
