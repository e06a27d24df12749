"""What made rows are worth: what a classifier gains by them, over all and label by label. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.classifiers.evaluation.statistics.mcnemar import PairedResult, format_p_value


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Scores of one label with one classifier."""

    f1: float | None
    """None where it was not judged on the label, or does not know it."""
    gain: float | None
    """Against the first classifier; None where one of the two has no F1."""


@dataclass(frozen=True, slots=True)
class LabelComparison:
    """One label, with a cell for each classifier in their order."""

    label: str
    support: int
    """Its test rows."""
    cells: list[LabelScore]


def compare_labels(sides: Sequence[Sequence[Mapping[str, Any]]]) -> list[LabelComparison]:
    """F1 of every label that has test rows, in the order in which the classifiers know them.

    Args:
        sides: of each classifier the `label`, `support` and `f1` of each label it knows.
    """
    known = [{entry["label"]: entry for entry in side} for side in sides]
    lines = []
    for label in dict.fromkeys(label for side in known for label in side):
        support = max(side[label]["support"] for side in known if label in side)
        found = [side[label]["f1"] if label in side else None for side in known]
        if support:
            lines.append(
                LabelComparison(
                    label, support, [LabelScore(f1, _gain(found[0], f1)) for f1 in found]
                )
            )
    return lines


def _gain(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else now - before


def describe_gain(found: PairedResult) -> str:
    """Describe the gain from synthetic rows: real rows (old) against both (new), row by row."""
    odds = f"McNemar’s test, p {format_p_value(found.p_value)}"
    if found.only_old == found.only_new == 0:
        return f"No difference: with and without the synthetic rows, {_same(found)}."
    counts = (
        f"of {found.rows:,} test rows, {found.only_new:,} are correct only with the synthetic "
        f"rows and {found.only_old:,} only without ({odds})"
    )
    if not found.is_significant:
        return (
            f"No significant difference: {counts}. More test rows would show smaller differences."
        )
    if found.difference > 0:
        return f"The synthetic rows help significantly: {counts}."
    return f"The synthetic rows hurt significantly: {counts}."


def _same(found: PairedResult) -> str:
    return f"the same {found.both:,} of {found.rows:,} test rows are correct"
