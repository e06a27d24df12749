"""Before and after."""

from apps.tuning.doctor.amount import Unit
from apps.tuning.doctor.comparison import Row, compare
from apps.tuning.doctor.examination import Examination
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.measurements import Measurement


def finding(code: str) -> Finding:
    return Finding(code=code, severity=Severity.FAULT, what="W.", evidence="E.", advice="A.")


def seconds(value: float) -> Measurement:
    return Measurement(name="First token", value=value, unit=Unit.SECONDS, is_less_better=True)


def test_what_was_found_before_and_no_more_is_mended() -> None:
    before = Examination("GPU", "m", [finding("a"), finding("b")])
    after = Examination("GPU", "m", [finding("b"), finding("c")])
    made = compare(before, after)
    assert [[one.code for one in group] for group in (made.mended, made.left, made.new)] == [
        ["a"],
        ["b"],
        ["c"],
    ]


def test_nothing_is_mended_where_the_second_time_could_not_tell() -> None:
    before = Examination("GPU", "m", [finding("a")])
    assert compare(before, Examination("GPU", "m", notes=["No slot was idle."])).mended == []
    assert compare(before, Examination("GPU", "m", is_examined=False)).mended == []


def test_measurements_stand_side_by_side() -> None:
    context = Measurement(name="Context", value=256, unit=Unit.TOKENS)
    before = Examination("GPU", "m", measurements=[seconds(2.0), context])
    larger = Measurement(name="Context", value=4096, unit=Unit.TOKENS)
    after = Examination("GPU", "m", measurements=[seconds(0.1), larger])
    assert compare(before, after).rows == [
        Row("First token", "2.00 s", "0.10 s", "better"),
        Row("Context", "256 tokens", "4,096 tokens", "better"),
    ]
    assert [row.verdict for row in compare(after, before).rows] == ["worse", "worse"]


def test_small_differences_and_missing_figures_have_no_verdict() -> None:
    before = Examination("GPU", "m", measurements=[seconds(1.0)])
    assert compare(before, Examination("GPU", "m", measurements=[seconds(1.1)])).rows == [
        Row("First token", "1.00 s", "1.10 s", "")
    ]
    assert compare(before, Examination("GPU", "m")).rows == [Row("First token", "1.00 s", "", "")]
