"""When tokens come, against when they were written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from apps.llm.events import Event, Token, Usage
from apps.tuning.doctor.answers import Answers, Arrival
from apps.tuning.doctor.questions import streams
from apps.tuning.doctor.questions.asker import Asker
from apps.tuning.doctor.questions.streams import arrival_of
from tests.tuning.doctor.readings import CHAT

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


class Clock:
    """The time at which each event comes, as the stream sets it."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class AskerOfStreams:
    """Answers each question with the next of some streams, whose tokens come at given times."""

    speed = SPEED

    def __init__(self, clock: Clock, *streams: list[float]) -> None:
        self.clock, self.streams = clock, list(streams)

    @asynccontextmanager
    async def stream(self, *question: object, **fields: object) -> AsyncIterator[Any]:
        yield self._events(self.streams.pop(0))

    async def _events(self, times: list[float]) -> AsyncIterator[Event]:
        for self.clock.now in times:
            yield Token("a")
        yield Usage(5, 0, TOKENS, SPEED)


WHOLE, EVEN = [7.0] * TOKENS, WRITTEN


def ask(monkeypatch: pytest.MonkeyPatch, *answers: list[float]) -> tuple[Arrival, int]:
    """Return what is known after the question, and how many answers were not asked for."""
    clock = Clock()
    monkeypatch.setattr(streams, "time", clock)
    asker, found = AskerOfStreams(clock, *answers), Answers()
    asyncio.run(streams.ask_for_stream(cast(Asker, asker), CHAT, found))
    assert found.arrival is not None
    return found.arrival, len(asker.streams)


def test_an_answer_that_came_late_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was busy for a moment is no proxy."""
    found, left = ask(monkeypatch, WHOLE, EVEN)
    assert not found.is_late
    assert left == 0


def test_a_proxy_that_holds_both_answers_back_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    found, left = ask(monkeypatch, WHOLE, WHOLE)
    assert found.is_late
    assert left == 0


def test_an_answer_that_came_in_time_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, left = ask(monkeypatch, EVEN, WHOLE)
    assert not found.is_late
    assert left == 1
