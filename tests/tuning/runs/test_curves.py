"""Curves as shapes of an SVG."""

import pytest

from apps.tuning.sweep.figures import Point
from apps.tuning.sweep.plan import Load
from apps.tuning.sweep.results import SweepResults
from apps.tuning.views.curves import HEIGHT, WIDTH, make_curves


def measured(rates: dict[int, float | None]) -> SweepResults:
    points = [Point(Load(at, 256), 1, None, rate, 0.1, 0.2, None) for at, rate in rates.items()]
    return SweepResults("m", 8, 4096, points=points)


@pytest.mark.parametrize(
    ("most", "top"),
    [(0.7, "1"), (1, "1"), (1.1, "2"), (9, "10"), (23, "25"), (101, "200"), (8123, "10,000")],
)
def test_axis_ends_at_a_round_number_that_is_not_less(most: float, top: str) -> None:
    assert make_curves([measured({1: most})])[0].y_ticks[-1].label == top


def test_nothing_measured_has_no_curve() -> None:
    assert make_curves([measured({})]) == []
    assert [curve.title for curve in make_curves([measured({1: None})])] == [
        "Time to the first token, ms"
    ]


def test_rate_of_zero_is_drawn_at_the_bottom() -> None:
    total = make_curves([measured({1: 0.0})])[0]
    assert total.lines[0].dots[0][1] == total.bottom


def test_points_lie_in_the_box_from_left_to_right() -> None:
    for curve in make_curves([measured({1: 10, 2: 30, 4: 60, 8: 65})]):
        for line in curve.lines:
            places = [place for place, _, _ in line.dots]
            assert places == sorted(places)
            assert all(0 < x < WIDTH and 0 < y < HEIGHT for x, y, _ in line.dots)
            assert line.points.split()[0] == f"{line.dots[0][0]},{line.dots[0][1]}"


def test_knee_is_marked_on_the_total_rate_alone() -> None:
    total, each, first = make_curves([measured({1: 10, 2: 30, 4: 60, 8: 65})])
    assert total.knee is not None
    assert total.knee.label == "knee: 4"
    assert total.knee.at == total.x_ticks[2].at
    assert each.knee is first.knee is None


def test_two_runs_share_an_axis_and_have_names() -> None:
    total, _, first = make_curves([measured({1: 10, 2: 20}), measured({1: 50, 4: 90})])
    assert [tick.label for tick in total.x_ticks] == ["1", "2", "4"]
    assert total.y_ticks[-1].label == "100"
    assert [(line.kind, line.name) for line in total.lines] == [
        ("1", "first run"),
        ("2", "second run"),
    ]
    assert [(line.kind, line.name) for line in first.lines] == [
        ("1", "first run: median"),
        ("2", "second run: median"),
        ("1-late", "first run: 95th percentile"),
        ("2-late", "second run: 95th percentile"),
    ]


def test_summary_says_all_values_for_who_does_not_see_them() -> None:
    total = make_curves([measured({1: 10, 2: 19.5})])[0]
    assert total.summary == "Tokens/s of all sequences by the number of sequences. 1: 10, 2: 20"
