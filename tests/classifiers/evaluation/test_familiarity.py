"""Strangers are told by what lies near them, whatever the number of labels."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from apps.classifiers.errors import BadArtefact
from apps.classifiers.evaluation import familiarity
from apps.classifiers.evaluation.calibration import softmax
from apps.classifiers.evaluation.familiarity import fit_familiarity
from apps.classifiers.evaluation.thresholds.decision import (
    Refusal,
    Thresholds,
    default_min_confidence,
)
from apps.classifiers.evaluation.thresholds.outcomes import auroc
from apps.classifiers.evaluation.thresholds.score_limit import score_limit
from apps.classifiers.evaluation.thresholds.tuning import best_kept_share
from apps.classifiers.prediction import predictor_file
from apps.classifiers.prediction.predictor import ModelCard, Predictor
from apps.classifiers.training import estimator, trainer

CENTRES = np.random.default_rng(99).normal(size=(60, 64))
BASE = np.random.default_rng(98).normal(size=64)


def texts(
    labels: int, per_label: int, *, seed: int, first: int = 0, noise: float = 0.8
) -> tuple[estimator.Floats, trainer.Codes]:
    """Clouds about the centres of labels; those from 40 on are out_of_scope."""
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(labels), per_label)
    points = BASE + CENTRES[first + codes] * 0.6 + noise * random.normal(size=(len(codes), 64))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points.astype(np.float32), codes.astype(np.int64)


def leaning(labels: int) -> estimator.Floats:
    """Strangers with something of a label in them, as a spam filter's have something of spam."""
    points, codes = texts(10, 60, seed=3, first=40)
    points = points + CENTRES[codes % labels] * 0.045
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def learnt(
    labels: int, per_label: int
) -> tuple[estimator.Model, familiarity.Familiarity, estimator.Floats]:
    vectors, codes = texts(labels, per_label, seed=1)
    groups = np.arange(len(codes))
    fit = trainer.fit(vectors, codes, groups)
    found, among = fit_familiarity(vectors, codes, groups, fit.out_of_fold.max(axis=1))
    return fit.model, found, among


@pytest.mark.parametrize("labels", [2, 3, 10])
def test_familiarity_separates_out_of_scope_texts_better_than_logits(labels: int) -> None:
    model, found, among = learnt(labels, 40)
    known, _ = texts(labels, 200, seed=2)
    strange = leaning(labels)
    by_logit = auroc(model.logits(known).max(axis=1), model.logits(strange).max(axis=1))
    scores = [found.score(side, model.logits(side).max(axis=1)) for side in (known, strange)]
    assert auroc(*scores) > max(0.8, by_logit + 0.02)
    limit = score_limit(among, 0.99)
    assert (scores[0] < limit).mean() <= 0.03


def test_of_two_labels_a_text_between_them_is_unsure_and_no_stranger() -> None:
    model, found, among = learnt(2, 60)
    known, codes = texts(2, 300, seed=2)
    between = known[codes == 0] + known[codes == 1]
    between /= np.linalg.norm(between, axis=1, keepdims=True)
    logits = model.logits(between)
    confidence = softmax(logits, model.temperature).max(axis=1)
    chosen = Thresholds(
        default_min_confidence(2, balanced=False),
        0.99,
        familiar=score_limit(among, 0.99),
    )
    score = found.score(between, logits.max(axis=1))
    said = [chosen.decide(*pair) for pair in zip(confidence.tolist(), score.tolist(), strict=True)]
    assert said.count(Refusal.NONE_OF_THESE) <= 0.03 * len(said)
    assert said.count(Refusal.UNSURE) > 0.1 * len(said)


def test_a_text_is_not_its_own_neighbour() -> None:
    vectors, codes = texts(2, 20, seed=1)
    logits = np.zeros(40, dtype=np.float32)
    found, among = fit_familiarity(vectors, codes, np.arange(40), logits)
    assert len(found.sample) == 40
    assert (
        found.score(vectors, logits) > among + 1
    ).all()  # there it finds itself, at a cosine of 1
    doubled, _ = fit_familiarity(
        np.repeat(vectors, 2, axis=0),
        np.repeat(codes, 2),
        np.repeat(np.arange(40), 2),
        logits.repeat(2),
    )
    assert len(doubled.sample) == 40


def test_what_is_kept_is_bounded_and_of_every_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(familiarity, "MAX_NUMBERS", 64 * 100)
    vectors, codes = texts(20, 30, seed=1)
    found, among = fit_familiarity(vectors, codes, np.arange(600), np.zeros(600, np.float32))
    assert found.sample.shape == (100, 64)
    kept = (found.sample @ vectors.T).argmax(axis=1)
    assert set(codes[kept].tolist()) == set(range(20))
    assert np.isfinite(among).all()


@pytest.mark.parametrize("rows", [1, 2])
def test_the_fewest_rows_that_can_be_trained(rows: int) -> None:
    vectors, codes = texts(2, rows, seed=1)
    found, among = fit_familiarity(
        vectors, codes, np.arange(len(codes)), np.ones(len(codes), np.float32)
    )
    assert found.nearest == 1
    assert np.isfinite(among).all()
    assert len(found.score(vectors[:0], np.zeros(0, np.float32))) == 0


def saved(tmp_path: Path) -> tuple[Predictor, estimator.Floats]:
    model, found, _ = learnt(3, 20)
    card = ModelCard(list("abc"), 64, model.temperature, "model", "x", familiarity=found.as_dict())
    kept = Predictor(card, model.weights, model.bias, found)
    predictor_file.save(tmp_path, "run-1", kept)
    return kept, texts(3, 5, seed=4)[0]


def test_familiarity_is_saved_with_the_classifier(tmp_path: Path) -> None:
    kept, given = saved(tmp_path)
    again = predictor_file.load(tmp_path, "run-1")
    scores = [[one.score for one in side.score_texts(given)] for side in (kept, again)]
    assert scores[0] == scores[1]
    assert scores[0] != [one.max_logit for one in kept.score_texts(given)]


def test_without_it_the_logit_is_the_score(tmp_path: Path) -> None:
    kept, given = saved(tmp_path)
    old = Predictor(replace(kept.card, familiarity={}), kept.weights, kept.bias)
    predictor_file.save(tmp_path, "run-2", old)
    found = predictor_file.load(tmp_path, "run-2").score_texts(given)
    assert [one.score for one in found] == [one.max_logit for one in found]


@pytest.mark.parametrize(
    "change",
    [
        {"nearest": 0},
        {"nearest": 61},
        {"nearest": 1.0},
        {"cosine": float("nan")},
        {"logit": "1"},
        {"more": 1.0},
    ],
)
def test_a_crafted_sample_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    kept, _ = saved(tmp_path)
    damaged = {**kept.card.familiarity, **change}
    bad = replace(kept, card=replace(kept.card, familiarity=damaged))  # type: ignore[arg-type]
    predictor_file.save(tmp_path, "run-3", bad)
    with pytest.raises(BadArtefact):
        predictor_file.load(tmp_path, "run-3")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("labels", "per_label"), [(2, 10), (2, 20), (3, 8), (5, 20), (10, 40)])
def test_a_handful_of_strangers_never_costs_more_than_three_in_a_hundred(
    labels: int, per_label: int, seed: int
) -> None:
    vectors, codes = texts(labels, per_label, seed=seed)
    groups = np.arange(len(codes))
    fit = trainer.fit(vectors, codes, groups)
    found, among = fit_familiarity(vectors, codes, groups, fit.out_of_fold.max(axis=1))
    good, _ = texts(labels, 2000 // labels, seed=100 + seed)
    score = found.score(good, fit.model.logits(good).max(axis=1))
    hard = texts(1, 5, seed=7, first=0)[0]  # labelled strangers that are like a label
    for count in range(1, 6):
        strange = found.score(hard[:count], fit.model.logits(hard[:count]).max(axis=1))
        limit = score_limit(among, best_kept_share(among, strange))
        assert (score < limit).mean() <= 0.03
