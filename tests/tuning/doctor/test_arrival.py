"""When tokens come, against when they were written."""

import pytest

from apps.tuning.doctor.answers import Arrival
from apps.tuning.doctor.questions.streams import arrival_of

SPEED = 40.0
TOKENS = 81
WRITTEN = [number / SPEED for number in range(TOKENS)]


def arrival(times: list[float]) -> Arrival:
    found = arrival_of(times, TOKENS, SPEED)
    assert found is not None
    return found


def test_a_stream_that_is_sent_on_at_once_is_not_late() -> None:
    found = arrival([5.0 + moment for moment in WRITTEN])
    assert found.generation == found.arrival == pytest.approx(2.0)
    assert found.delay == pytest.approx(0.0)
    assert not found.is_late


def test_an_answer_that_comes_whole_is_late_by_half_its_time() -> None:
    found = arrival([7.0] * TOKENS)
    assert (found.arrival, found.delay) == (0.0, pytest.approx(1.0))
    assert found.is_late


def test_bursts_of_a_buffer_are_late_by_half_their_length() -> None:
    burst = 27
    found = arrival([(1 + number // burst) * burst / SPEED for number in range(TOKENS)])
    assert found.delay == pytest.approx(burst / SPEED / 2, abs=0.02)
    assert found.is_late


def test_pieces_of_several_tokens_are_not_late() -> None:
    found = arrival([WRITTEN[number] for number in range(3, TOKENS, 4)])
    assert not found.is_late


@pytest.mark.parametrize(
    ("times", "tokens", "speed"), [([], 9, 4.0), ([1.0], 9, None), ([1.0], 1, 4.0)]
)
def test_without_times_or_a_speed_nothing_is_known(
    times: list[float], tokens: int, speed: float | None
) -> None:
    assert arrival_of(times, tokens, speed) is None
