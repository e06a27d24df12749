"""Which width is best, and how a job's course is kept, on a clock of the test's own."""

import pytest

from apps.batch.pump.concurrency_probe import PATIENCE_SECONDS, Trial, best_of, steps
from apps.batch.pump.throughput import MOST_POINTS, Meter, Point, added


@pytest.mark.parametrize(
    ("slots", "expected"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 4, 8])]
)
def test_one_half_and_all(slots: int, expected: list[int]) -> None:
    assert steps(slots) == expected


def play(trial: Trial, speed: dict[int, float]) -> None:
    """Rows of 10 tokens on a server that gives each of n rows at once speed[n] / n tokens/s."""
    now, row = trial.now, 0
    while (width := trial.width) is not None:
        lasts = 10 * width / speed[width]
        first = row
        for _ in range(width):
            row += 1
            trial.begun(row, now)
        now += lasts
        for ended in range(first + 1, row + 1):
            trial.ended(ended, 10, now)


@pytest.mark.parametrize(
    ("speed", "best"),
    [
        ({1: 30.0, 2: 50.0, 4: 80.0}, 4),
        ({1: 40.0, 2: 60.0, 4: 30.0}, 2),
        ({1: 41.0, 2: 41.0, 4: 40.0}, 4),  # not clearly faster
    ],
)
def test_the_best_width_is_found(speed: dict[int, float], best: int) -> None:
    trial = Trial(4, 100.0)
    play(trial, speed)
    result = trial.result("m")
    assert result is not None
    rates = {int(width): rate for width, rate in result["rates"].items()}
    assert rates == pytest.approx(speed, rel=0.01)
    assert (result["best"], best_of(rates), result["slots"], result["model"]) == (
        best,
        best,
        4,
        "m",
    )


def test_rows_of_an_earlier_step_do_not_count() -> None:
    trial = Trial(2, 0.0)
    for row in range(4):
        trial.begun(row, 0.0)
    for row in range(3):
        trial.ended(row, 10, 3.0)
    assert trial.width == 2
    trial.ended(3, 10_000, 3.1)  # began when the step was another
    for row in range(5, 8):
        trial.begun(row, 3.1)
        trial.ended(row, 10, 7.0)
    assert trial.width is None
    assert trial.rates[2] == pytest.approx(2 * 10 / 3.9)


def test_rows_that_take_long_end_a_step_one_by_one_and_rows_without_tokens_tell_nothing() -> None:
    trial = Trial(2, 0.0)
    trial.begun(1, 0.0)
    trial.ended(1, 0, PATIENCE_SECONDS + 1)
    assert trial.width == 2
    trial.begun(2, 40.0)
    assert trial.ended(2, 0, 40.0 + PATIENCE_SECONDS)
    assert trial.result("m") is None


def test_the_course_stays_short_and_loses_nothing() -> None:
    points: list[Point] = []
    for at in range(3 * MOST_POINTS):
        points = added(points, [at * 5.0, 5.0, 20.0, 2, 100])
    assert len(points) <= MOST_POINTS
    assert sum(point[3] for point in points) == 2 * 3 * MOST_POINTS
    assert sum(point[1] for point in points) == 5.0 * 3 * MOST_POINTS
    assert [point[0] for point in points] == sorted(point[0] for point in points)
    assert points[0][0] == 0


def test_a_meter_counts_between_two_points() -> None:
    meter = Meter(100.0)
    meter.count(7, 50)  # before the first second is over
    meter.tick(101.0, 1.0, {7: 4})
    meter.count(7, 50)
    meter.tick(102.0, 1.0, {7: 2, 8: 1})
    assert meter.take(102.0) == {7: [100.0, 2.0, 6.0, 2, 100], 8: [101.0, 1.0, 1.0, 0, 0]}
    assert meter.take(103.0) == {}


def test_every_row_is_in_the_course_whenever_it_ends() -> None:
    meter, points = Meter(0.0), []
    for second in range(60):
        for _ in range(7):
            meter.count(1, 10)
        meter.tick(second + 1.0, 1.0, {1: 4})
        if second % 5 == 4:
            points.append(meter.take(second + 1.0)[1])
    assert sum(point[3] for point in points) == 60 * 7
    assert sum(point[1] for point in points) == 60.0
