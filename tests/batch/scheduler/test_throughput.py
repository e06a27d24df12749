"""Throughput points on a clock of the test's own."""

import math

from hypothesis import given
from hypothesis import strategies as st

from apps.batch.scheduler.throughput import MAX_POINTS, Point, ThroughputMeter, append_point


@given(st.integers(0, 4 * MAX_POINTS))
def test_append_point_stays_bounded_and_keeps_sums_and_order(count: int) -> None:
    points: list[Point] = []
    for at in range(count):
        points = append_point(points, Point(at * 5.0, 5.0, 20.0, 2, 100))
    assert len(points) <= MAX_POINTS
    assert sum(point.rows for point in points) == 2 * count
    assert sum(point.tokens for point in points) == 100 * count
    assert math.isclose(sum(point.busy_seconds for point in points), 5.0 * count)
    starts = [point.start for point in points]
    assert starts == sorted(starts)
    assert starts[:1] == [0.0][:count]


@given(st.lists(st.floats(0, 1e9).map(lambda value: round(value, 2)), min_size=5, max_size=5))
def test_point_json_round_trip(values: list[float]) -> None:
    assert Point.from_json(values).to_json() == values


def test_take_points_returns_work_since_the_last_call() -> None:
    meter = ThroughputMeter(100.0)
    meter.add_row(7, 50)  # before the first second is over
    meter.add_time(101.0, 1.0, {7: 4})
    meter.add_row(7, 50)
    meter.add_time(102.0, 1.0, {7: 2, 8: 1})
    assert meter.take_points(102.0) == {
        7: Point(100.0, 2.0, 6.0, 2, 100),
        8: Point(101.0, 1.0, 1.0, 0, 0),
    }
    assert meter.take_points(103.0) == {}


@given(st.lists(st.lists(st.integers(0, 500), max_size=9), min_size=1, max_size=60))
def test_take_points_counts_each_row_once(seconds: list[list[int]]) -> None:
    meter, points = ThroughputMeter(0.0), []
    for second, rows in enumerate(seconds, start=1):
        for tokens in rows:
            meter.add_row(1, tokens)
        meter.add_time(float(second), 1.0, {1: 4})
        if second % 5 == 0:
            points.append(meter.take_points(float(second))[1])
    points += meter.take_points(float(len(seconds))).values()
    assert sum(point.rows for point in points) == sum(map(len, seconds))
    assert sum(point.tokens for point in points) == sum(map(sum, seconds))
    assert sum(point.busy_seconds for point in points) == len(seconds)
