"""The search for a server's width, against servers whose throughput is known for each width."""

import random
from collections.abc import Callable

import pytest

from apps.servers.facts.capacity import START_WIDTH
from apps.servers.slots import width_search
from apps.servers.slots.width_search import WidthSearch

Throughput = Callable[[int], float]
"""Tokens/s of a server with so many requests in flight."""


class Played:
    """A server on a clock of its own: all requests in flight share its throughput equally."""

    def __init__(self, search: WidthSearch, throughput: Throughput) -> None:
        self.search, self.throughput, self.now = search, throughput, 0.0
        self.refuses_above: int | None = None
        self.widths: list[int] = []
        self._left: dict[int, float] = {}
        self._length: dict[int, float] = {}
        self._number = 0
        self._random = random.Random(7)

    def run(self, until: Callable[[], bool], seconds: float = 1000.0) -> None:
        end = self.now + seconds
        while not until() and self.now < end:
            self._fill()
            each = self.throughput(len(self._left)) / len(self._left)
            first = min(self._left, key=lambda number: self._left[number])
            took = self._left[first] / each
            self.now += took
            self._left = {n: left - each * took for n, left in self._left.items() if n != first}
            if self.search.finished(first, self._length.pop(first), self.now):
                self.widths.append(self.search.width)

    def run_until_settled(self) -> int:
        self.run(lambda: self.search.is_settled)
        assert self.search.is_settled
        return self.search.width

    def _fill(self) -> None:
        while len(self._left) < self.search.width:
            self._number += 1
            self.search.started(self._number, self.now)
            if self.refuses_above and len(self._left) >= self.refuses_above:
                self.search.dropped(self._number, self.now)
                self.search.refused(self.now)
                return
            tokens = self._random.uniform(10, 60)
            self._left[self._number] = self._length[self._number] = tokens


def saturates(width: int) -> Throughput:
    return lambda in_flight: 50.0 * min(in_flight, width)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 24, 31, 40, 64, 100])
def test_the_width_where_the_throughput_stops_to_grow(width: int) -> None:
    found = Played(WidthSearch(0.0), saturates(width)).run_until_settled()
    assert 0.8 * width <= found <= 1.2 * width


@pytest.mark.parametrize("half", [4, 16, 60])
def test_a_throughput_that_grows_ever_slower(half: int) -> None:
    def throughput(in_flight: int) -> float:
        return 50.0 * in_flight / (1 + in_flight / half)

    found = Played(WidthSearch(0.0), throughput).run_until_settled()
    best = max(throughput(width) for width in range(1, width_search.MAX_WIDTH + 1))
    assert throughput(found) >= 0.7 * best


def test_a_throughput_that_falls_again() -> None:
    def throughput(in_flight: int) -> float:
        return 50.0 * (in_flight if in_flight <= 12 else 144 / in_flight)

    assert 10 <= Played(WidthSearch(0.0), throughput).run_until_settled() <= 14


def test_it_starts_at_four_and_grows() -> None:
    played = Played(WidthSearch(0.0), saturates(20))
    assert played.search.width == START_WIDTH
    played.run(lambda: len(played.widths) == 3)
    assert played.widths == [6, 9, 13]
    assert played.search.reason == width_search.FIRST


def test_a_refusal_halves_the_width_which_then_stays_below() -> None:
    played = Played(WidthSearch(0.0), saturates(40))
    played.refuses_above = 9
    assert 6 <= played.run_until_settled() <= 9
    assert played.search.reason == width_search.REFUSED


def test_refusals_of_the_same_moment_count_once() -> None:
    search = WidthSearch(0.0, 16)
    assert search.refused(1.0)
    assert not search.refused(1.5)
    assert search.width == 8
    assert search.refused(9.0)
    assert search.width == 4


def test_answers_that_become_slow_halve_the_width() -> None:
    played = Played(WidthSearch(0.0), saturates(20))
    wide = played.run_until_settled()
    played.run(lambda: False, seconds=10)
    played.throughput = saturates(5)
    played.run(lambda: not played.search.is_settled, seconds=60)
    assert (played.search.width, played.search.reason) == (wide // 2, width_search.SLOWER)
    assert 4 <= played.run_until_settled() <= 6


def test_a_stored_width_is_used_until_it_is_measured_again() -> None:
    played = Played(WidthSearch(0.0, 8, is_settled=True), saturates(24))
    played.run(lambda: not played.search.is_settled, seconds=500)
    assert played.search.width == 8
    played.run(lambda: not played.search.is_settled, seconds=width_search.REPEAT_SECONDS)
    assert 20 <= played.run_until_settled() <= 28


def test_too_few_requests_decide_nothing() -> None:
    search, now = WidthSearch(0.0), 0.0
    for number in range(500):  # one at a time, as with one row left or people in the other slots
        search.started(number, now)
        now += 0.5
        assert not search.finished(number, 20, now)
    assert (search.width, search.is_settled) == (START_WIDTH, False)


def test_a_pause_is_not_measured() -> None:
    search = WidthSearch(0.0)
    for number in range(4):
        search.started(number, 0.0)
    search.pause(100.0)
    assert not any(search.finished(number, 20, 100.0) for number in range(4))
    assert search.width == START_WIDTH
