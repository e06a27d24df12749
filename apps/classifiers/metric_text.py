"""Sentences about a run's numbers, each said only where the rows carry it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from apps.classifiers.run_results import CurvePoint

# Below, a perfectly calibrated model shows several percent by chance, and so does a learning curve.
MIN_ROWS_FOR_CALIBRATION = 100
TOP_BIN = 0.95  # of confidence: nearly all rows are in it, and nearly all of them right
SMALL_GAIN = 0.01


def describe_learning_curve(points: Sequence[CurvePoint]) -> str:
    """Say if more rows would help, from the last step of a learning curve."""
    if len(points) < 2:
        return ""
    before, last = points[-2:]
    if last.p_value is None:  # of an older run
        return ""
    gain = last.accuracy - before.accuracy
    step = (
        f"From {before.rows:,} to {last.rows:,} training rows, accuracy changed by "
        f"{100 * gain:+.1f} percentage points (95% CI {100 * last.gain_low:+.1f} to "
        f"{100 * last.gain_high:+.1f})"
    )
    if last.p_value < 0.05 and gain > 0:
        return f"{step}: more rows of the same kind are likely to help."
    if last.p_value < 0.05 and gain < 0:
        return f"{step}: the last rows made it worse. Check their labels."
    if last.gain_high <= SMALL_GAIN:
        return (
            f"{step}: more rows of the same kind will not help much. Check the labels it confuses "
            "instead."
        )
    return f"{step}: too few test rows to tell whether more training rows would help."


def describe_calibration(metrics: Mapping[str, Any]) -> str:
    """Compare the calibration error with what chance alone shows on as many rows."""
    rows, error = metrics.get("rows", 0), metrics.get("ece")
    expected, high = metrics.get("ece_expected"), metrics.get("ece_expected_high")
    if error is None or expected is None or high is None:
        return ""
    if rows < MIN_ROWS_FOR_CALIBRATION:
        return f"Too few test rows ({rows:,}) to measure calibration."
    chance = f"a perfectly calibrated model would show about {expected:.1%} on {rows:,} rows"
    if error <= high:
        return (
            f"The calibration error, the mean gap between confidence and accuracy, is within what "
            f"chance shows: {chance}."
        )
    return (
        f"The calibration error is the mean gap between confidence and accuracy; single ranges of "
        f"confidence may be further off. Chance alone does not explain it: {chance}, rarely more "
        f"than {high:.1%}."
    )


def summarise_calibration(
    metrics: Mapping[str, Any], reliability: Sequence[Mapping[str, Any]]
) -> str:
    """Judge calibration in a word, and tell how often one confidence was right."""
    error, high = metrics.get("ece"), metrics.get("ece_expected_high")
    rows = sum(entry["count"] for entry in reliability)
    if error is None or not rows:
        return ""
    lead = sum(entry["count"] * (entry["confidence"] - entry["accuracy"]) for entry in reliability)
    if high is not None and error <= high:
        verdict = "Good."
    else:
        verdict = "Overconfident." if lead > 0 else "Underconfident."
    below_top = [entry for entry in reliability if entry["confidence"] < TOP_BIN]
    shown = max(below_top or reliability, key=lambda entry: entry["count"])
    return (
        f"{verdict} Answers with {shown['confidence']:.0%} confidence were right "
        f"{shown['accuracy']:.0%} of the time."
    )
