"""Concurrency probe on a clock of the test's own."""

import pytest

from apps.batch.scheduler.concurrency_probe import (
    MAX_STEP_SECONDS,
    ConcurrencyProbe,
    ProbeResult,
    best_width,
    probe_steps,
)


@pytest.mark.parametrize(
    ("slots", "expected"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 4, 8])]
)
def test_probe_steps_are_one_half_and_all(slots: int, expected: list[int]) -> None:
    assert probe_steps(slots) == expected


def play(probe: ConcurrencyProbe, speed: dict[int, float]) -> None:
    """Rows of 10 tokens on a server that gives each of n rows at once speed[n] / n tokens/s."""
    now, row = probe.now, 0
    while (width := probe.width) is not None:
        lasts = 10 * width / speed[width]
        first = row
        for _ in range(width):
            row += 1
            probe.row_started(row, now)
        now += lasts
        for ended in range(first + 1, row + 1):
            probe.row_finished(ended, 10, now)


@pytest.mark.parametrize(
    ("speed", "best"),
    [
        ({1: 30.0, 2: 50.0, 4: 80.0}, 4),
        ({1: 40.0, 2: 60.0, 4: 30.0}, 2),
        ({1: 41.0, 2: 41.0, 4: 40.0}, 4),  # not clearly faster
    ],
)
def test_result_names_the_best_width(speed: dict[int, float], best: int) -> None:
    probe = ConcurrencyProbe(4, 100.0)
    play(probe, speed)
    result = probe.result("m")
    assert result is not None
    assert result.rates == pytest.approx(speed, rel=0.01)
    assert (result.best, best_width(result.rates)) == (best, best)
    assert (result.slots, result.model, result.limit) == (4, "m", best if best < 4 else None)
    assert ProbeResult.from_json(result.to_json()) == result


def test_row_finished_ignores_rows_of_an_earlier_step() -> None:
    probe = ConcurrencyProbe(2, 0.0)
    for row in range(4):
        probe.row_started(row, 0.0)
    for row in range(3):
        probe.row_finished(row, 10, 3.0)
    assert probe.width == 2
    probe.row_finished(3, 10_000, 3.1)  # began when the step was another
    for row in range(5, 8):
        probe.row_started(row, 3.1)
        probe.row_finished(row, 10, 7.0)
    assert probe.width is None
    assert probe.rates[2] == pytest.approx(2 * 10 / 3.9)


def test_result_is_none_for_rows_without_tokens() -> None:
    probe = ConcurrencyProbe(2, 0.0)
    probe.row_started(1, 0.0)
    probe.row_finished(1, 0, MAX_STEP_SECONDS + 1)
    assert probe.width == 2
    probe.row_started(2, 40.0)
    assert probe.row_finished(2, 0, 40.0 + MAX_STEP_SECONDS)
    assert probe.result("m") is None
