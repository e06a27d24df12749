"""Throughput of a pump on a clock of the test's own."""

from hypothesis import given
from hypothesis import strategies as st

from apps.batch.pump.metrics import ThroughputMeter
from apps.batch.scheduler.throughput import Point


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
