"""The recipe on made-up vectors: clouds on a sphere, so that the right answer is known."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from apps.classifiers.evaluation.calibration import COLDEST, softmax
from apps.classifiers.evaluation.statistics.calibration_error import (
    classwise_calibration_error,
    expected_calibration_error,
)
from apps.classifiers.evaluation.statistics.metrics import log_loss
from apps.classifiers.training import estimator, trainer
from apps.classifiers.training.folds import Codes


def clouds(
    labels: int, per_label: int, *, noise: float, seed: int = 0, dimensions: int = 32
) -> tuple[estimator.Floats, Codes]:
    centres = np.random.default_rng(99).normal(size=(labels, dimensions))
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(labels), per_label)
    points = centres[codes] + noise * random.normal(size=(len(codes), dimensions))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points.astype(np.float32), codes.astype(np.int64)


def fit(vectors: estimator.Floats, labels: Codes, **options: object) -> trainer.Fit:
    chosen = estimator.TrainerOptions(**options)  # type: ignore[arg-type]
    return trainer.fit(vectors, labels, np.arange(len(labels)), options=chosen)


@pytest.mark.parametrize("labels", [2, 3, 12])
def test_trained_model_is_accurate_and_calibrated(labels: int) -> None:
    vectors, codes = clouds(labels, 60, noise=1.4)
    fitted = fit(vectors, codes)
    test_vectors, truth = clouds(labels, 200, noise=1.4, seed=1)
    logits = fitted.model.logits(test_vectors)
    assert (logits.argmax(axis=1) == truth).mean() > 0.85
    calibrated = softmax(logits, fitted.model.temperature)
    correct = calibrated.argmax(axis=1) == truth
    assert expected_calibration_error(calibrated.max(axis=1), correct) < 0.05
    assert log_loss(calibrated, truth) <= log_loss(softmax(logits), truth) + 0.01


def test_the_same_seed_gives_the_same_digits() -> None:
    vectors, codes = clouds(4, 30, noise=1.5)
    one, two = fit(vectors, codes, seed=3), fit(vectors, codes, seed=3)
    assert np.array_equal(one.model.weights, two.model.weights)
    assert one.path == two.path


def test_unscaled_it_is_what_scikit_learn_gives() -> None:
    """What others have measured with a plain call can be repeated to the digit."""
    from sklearn.linear_model import LogisticRegression  # noqa: TID251 - what is repeated

    vectors, codes = clouds(5, 8, noise=1.5)
    before = vectors.copy()
    plain = LogisticRegression(max_iter=100).fit(vectors, codes)
    ours = estimator.fit_once(vectors, codes, 5, C=1.0, scale=np.float32(1))
    assert np.array_equal(ours.weights, plain.coef_.astype(np.float32))
    assert np.array_equal(vectors, before)
    scaled = estimator.fit_once(vectors, codes, 5, C=1.0)
    assert not np.array_equal(scaled.weights, ours.weights)
    assert np.allclose(scaled.weights, ours.weights, atol=0.02)


def test_scaling_changes_nothing_but_the_time() -> None:
    """weights for vectors times 10 with C / 100 are weights for the vectors themselves with C."""
    from sklearn.linear_model import LogisticRegression  # noqa: TID251 - a second opinion

    vectors, codes = clouds(3, 40, noise=1.5)
    fitted = fit(vectors, codes)
    plain = LogisticRegression(C=fitted.C, max_iter=5000, tol=1e-8).fit(
        vectors.astype(np.float64), codes
    )
    assert np.allclose(
        plain.predict_proba(vectors), softmax(fitted.model.logits(vectors)), atol=5e-3
    )


def test_out_of_fold_is_honest() -> None:
    """Labels drawn by lot cannot be predicted for rows the model has not seen."""
    vectors, _ = clouds(2, 100, noise=1.0)
    codes = np.random.default_rng(5).integers(0, 2, 200)
    fitted = fit(vectors, codes)
    assert abs((fitted.out_of_fold.argmax(axis=1) == codes).mean() - 0.5) < 0.12


def test_copies_of_a_text_do_not_help() -> None:
    vectors, _ = clouds(2, 50, noise=1.0)
    codes = np.random.default_rng(5).integers(0, 2, 100)
    doubled = trainer.fit(
        np.repeat(vectors, 2, axis=0), np.repeat(codes, 2), np.repeat(np.arange(100), 2)
    )
    accuracy = (doubled.out_of_fold.argmax(axis=1) == np.repeat(codes, 2)).mean()
    assert accuracy < 0.68


def test_copies_dealt_anyhow_would_help() -> None:
    """Labels drawn by lot, each text three times: the naive score remembers them."""
    vectors, _ = clouds(1, 60, noise=1.4, dimensions=64)
    lots = np.random.default_rng(6).integers(0, 2, size=60)
    copies = np.tile(np.arange(60), 3)
    fitted = trainer.fit(vectors[copies], lots[copies], copies)
    grouped = next(step.accuracy for step in fitted.path if step.C == 100)
    naive = trainer.naive_accuracy(vectors[copies], lots[copies], C=100)
    assert grouped < 0.65 < 0.9 < naive


def test_the_edge_of_the_grid_is_flagged() -> None:
    fitted = fit(*clouds(3, 40, noise=0.01))
    assert [strength.C for strength in fitted.path] == list(trainer.STRENGTHS)
    assert (fitted.C, fitted.at_edge) == (1.0, False)  # no other does better, none beyond would
    first, *rest = fitted.path
    better = replace(first, log_loss=0.9 * rest[0].log_loss)
    assert replace(fitted, path=(better, *rest)).at_edge


def test_a_label_with_two_rows_is_enough() -> None:
    vectors, codes = clouds(6, 2, noise=0.5)
    assert fit(vectors, codes).model.weights.shape == (6, 32)


def test_balanced_finds_more_of_the_rare() -> None:
    vectors, codes = clouds(2, 200, noise=3.0)
    keep = np.r_[0:200, 200:215]
    test_vectors, truth = clouds(2, 200, noise=3.0, seed=1)
    recalls = []
    for balanced in (False, True):
        model = fit(vectors[keep], codes[keep], balanced=balanced).model
        recalls.append((model.choose(model.logits(test_vectors))[truth == 1] == 1).mean())
    assert recalls[1] > recalls[0]


def rare(rows: int, seed: int) -> tuple[estimator.Floats, Codes]:
    """Two overlapping labels, one of them on 5 % of the rows."""
    centres = np.random.default_rng(9).normal(size=(2, 64))
    random = np.random.default_rng(seed)
    codes = (random.random(rows) < 0.05).astype(np.int64)
    points = centres[codes] * 0.35 + random.normal(size=(rows, 64)) * 1.4
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32), codes


@pytest.mark.parametrize("balanced", [False, True])
def test_probabilities_of_a_rare_label_mean_what_they_say(balanced: bool) -> None:
    model = fit(*rare(3000, 1), balanced=balanced).model
    vectors, truth = rare(10_000, 2)
    logits = model.logits(vectors)
    probabilities = softmax(logits, model.temperature)
    assert classwise_calibration_error(probabilities, truth) <= 0.05
    assert probabilities[:, 1].mean() == pytest.approx(truth.mean(), abs=0.01)
    given = model.choose(logits) == 1
    assert probabilities[given, 1].mean() == pytest.approx(truth[given].mean(), abs=0.12)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("labels", "per_label", "noise"),
    [(2, 4, 2.0), (2, 10, 1.5), (2, 20, 1.5), (2, 20, 2.5), (3, 8, 2.0), (5, 4, 1.5), (5, 20, 2.5)],
)
def test_few_rows_never_make_it_certain(
    labels: int, per_label: int, noise: float, seed: int
) -> None:
    """Rows that are all told apart say that mistakes are rare, not that there are none."""
    vectors, codes = clouds(labels, per_label, noise=noise, seed=seed, dimensions=64)
    fitted = fit(vectors, codes)
    assert fitted.model.temperature > COLDEST * 1.01
    test_vectors, truth = clouds(labels, 300, noise=noise, seed=100 + seed, dimensions=64)
    halves = test_vectors[truth == 0] + test_vectors[truth == 1]  # as much of one as of the other
    halves /= np.linalg.norm(halves, axis=1, keepdims=True)
    for given, wrong in ((test_vectors, None), (halves.astype(np.float32), True)):
        logits = fitted.model.logits(given)
        confidence = softmax(logits, fitted.model.temperature).max(axis=1)
        mistakes = logits.argmax(axis=1) != truth if wrong is None else confidence > 0
        if mistakes.any():
            assert np.median(confidence[mistakes]) < 0.9


def test_too_few_mistakes_are_no_calibration() -> None:
    easy = fit(*clouds(2, 20, noise=0.5))
    assert (easy.mistakes, easy.calibrated) == (0, False)
    hard = fit(*clouds(3, 60, noise=3.0))
    assert hard.mistakes >= 10
    assert hard.calibrated


def test_of_strengths_that_do_alike_the_strongest_regularisation_wins() -> None:
    fitted = fit(*clouds(2, 12, noise=1.5, dimensions=384))
    losses = {step.C: step.log_loss for step in fitted.path}
    assert min(losses.values()) > 0
    assert fitted.C == 1.0


def test_report_counts_fits_and_may_end_it() -> None:
    vectors, codes = clouds(3, 70, noise=1.0)
    seen: list[tuple[int, int]] = []
    trainer.fit(vectors, codes, np.arange(210), report=lambda *now: seen.append(now))
    assert seen[0] == (0, 26)
    assert seen[-1] == (26, 26)

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.fit(vectors, codes, np.arange(210), report=stop)


def test_slow_convergence_is_said_not_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator, "MAX_ITERATIONS", 2)
    vectors, codes = clouds(5, 20, noise=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not fit(vectors, codes).converged
