"""Points of the throughput of a job: bounded, and the same read back."""

import math

from hypothesis import given
from hypothesis import strategies as st

from apps.batch.scheduler.throughput import MAX_POINTS, Point, append_point


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
