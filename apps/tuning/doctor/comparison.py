"""Two examinations of the same model: before a server was mended, and after. Pure."""

from dataclasses import dataclass

from apps.tuning.doctor.examination import Examination
from apps.tuning.doctor.findings import Finding
from apps.tuning.doctor.measurements import Measurement

# Times of single requests differ by as much without any reason.
NOTEWORTHY = 0.2


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement, before and after."""

    name: str
    before: str
    """"": not measured."""
    after: str
    verdict: str
    """ "better", "worse", or "" where both are about the same or one is missing."""


@dataclass(frozen=True, slots=True)
class Comparison:
    mended: list[Finding]
    """Found before, and no more."""
    left: list[Finding]
    new: list[Finding]
    rows: list[Row]


def compare(before: Examination, after: Examination) -> Comparison:
    """Compare two examinations of a model.

    A finding counts as mended only where the second examination could tell: it asked everything.
    """
    found = {finding.code for finding in after.findings}
    known = {finding.code for finding in before.findings}
    is_whole = after.is_examined and not after.notes
    return Comparison(
        [one for one in before.findings if is_whole and one.code not in found],
        [one for one in after.findings if one.code in known],
        [one for one in after.findings if one.code not in known],
        _rows(before.measurements, after.measurements),
    )


def _rows(before: list[Measurement], after: list[Measurement]) -> list[Row]:
    earlier = {one.name: one for one in before}
    later = {one.name: one for one in after}
    return [_row(name, earlier.get(name), later.get(name)) for name in {**earlier, **later}]


def _row(name: str, before: Measurement | None, after: Measurement | None) -> Row:
    first = before.text if before is not None else ""
    second = after.text if after is not None else ""
    return Row(name, first, second, _verdict(before, after))


def _verdict(before: Measurement | None, after: Measurement | None) -> str:
    if before is None or after is None:
        return ""
    largest = max(abs(before.value), abs(after.value))
    if abs(after.value - before.value) <= NOTEWORTHY * largest:
        return ""
    return "better" if (after.value < before.value) == after.is_less_better else "worse"
