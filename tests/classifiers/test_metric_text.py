"""A sentence is said only where the rows carry it."""

from dataclasses import replace

import numpy as np
import pytest

from apps.classifiers import metric_text
from apps.classifiers.evaluation.statistics.calibration_error import chance_calibration_error
from apps.classifiers.evaluation.statistics.mcnemar import compare_paired
from apps.classifiers.models import Run
from apps.classifiers.run_results import CurvePoint


def step(before: int, after: int, rows: int) -> list[CurvePoint]:
    """A curve whose last step turns wrong rows right, or right ones wrong."""
    sides = [np.arange(rows) < count for count in (before, after)]
    found = compare_paired(*sides)
    first, last = (
        CurvePoint(n, float(side.mean())) for n, side in zip((70, 100), sides, strict=True)
    )
    return [
        first,
        replace(last, p_value=found.p_value, gain_low=found.low, gain_high=found.high),
    ]


@pytest.mark.parametrize(
    ("curve", "says"),
    [
        (step(16, 17, 20), "too few test rows to tell"),  # +5 points, one row
        (step(18, 16, 20), "too few test rows to tell"),
        (step(8, 8, 10), "too few test rows to tell"),
        (step(800, 860, 1000), "+6.0 percentage points (95% CI +4.5 to +7.5): more rows of"),
        (step(860, 800, 1000), "made it worse"),
        (step(930, 930, 1000), "will not help much"),
    ],
)
def test_describe_learning_curve_advises_by_its_slope(curve: list[CurvePoint], says: str) -> None:
    assert says in metric_text.describe_learning_curve(curve)


def test_a_curve_of_an_older_run_says_nothing() -> None:
    assert metric_text.describe_learning_curve([CurvePoint(7, 0.5), CurvePoint(10, 0.9)]) == ""
    assert metric_text.describe_learning_curve([]) == ""


@pytest.mark.parametrize(
    ("rows", "error", "says"),
    [
        (10, 0.025, "Too few test rows (10)"),
        (100, 0.05, "within what chance shows"),
        (5000, 0.05, "Chance alone does not explain it"),
    ],
)
def test_describe_calibration_error_in_words(rows: int, error: float, says: str) -> None:
    sure = np.random.default_rng(0).beta(6, 1.2, size=rows).astype(np.float32) / 2 + 0.5
    expected, high = chance_calibration_error(sure)
    found = {"rows": rows, "ece": error, "ece_expected": expected, "ece_expected_high": high}
    assert says in metric_text.describe_calibration(found)
    assert "90 %" not in metric_text.describe_calibration(found)


def test_an_imported_run_knows_no_more_than_its_number() -> None:
    assert metric_text.describe_calibration({"rows": 500, "ece": 0.02}) == ""
    assert metric_text.describe_calibration({}) == ""


def test_a_list_of_runs_says_no_more_of_calibration_than_its_headline() -> None:
    few, enough = (Run(metrics={"rows": rows, "ece": 0.05}) for rows in (99, 100))
    assert (few.ece, enough.ece) == (None, 0.05)


def reliability(*bins: tuple[int, float, float]) -> list[dict[str, float]]:
    return [{"count": n, "confidence": said, "accuracy": right} for n, said, right in bins]


@pytest.mark.parametrize(
    ("error", "bins", "says"),
    [
        (
            0.02,
            [(40, 0.85, 0.83), (900, 0.99, 0.99)],
            "Good. Answers with 85% confidence were right 83%",
        ),
        (0.2, [(40, 0.85, 0.6)], "Overconfident. Answers with 85%"),
        (0.2, [(40, 0.6, 0.9)], "Underconfident. Answers with 60%"),
        (0.02, [], ""),
        (None, [(40, 0.6, 0.9)], ""),
    ],
)
def test_summarise_calibration_gives_a_verdict_and_an_example(
    error: float | None, bins: list[tuple[int, float, float]], says: str
) -> None:
    metrics = {"ece": error, "ece_expected_high": 0.1}
    found = metric_text.summarise_calibration(metrics, reliability(*bins))
    assert found.startswith(says)
    assert bool(found) == bool(says)
