"""Deficit round robin in tokens."""

from collections import Counter
from itertools import pairwise

from apps.batch.pump.fair_queue import QUANTUM_TOKENS, Turns


def work(turns: Turns, costs: dict[int, int], weights: dict[int, int], rows: int) -> list[int]:
    order = []
    for _ in range(rows):
        job = turns.pick(weights)
        charged = turns.start(job)
        turns.finish(job, charged=charged, tokens=costs[job])
        order.append(job)
    return order


def test_one_job_is_always_next() -> None:
    assert set(work(Turns(), {1: 100}, {1: 1}, 200)) == {1}


def test_a_turn_is_a_run_of_rows_on_one_prefix() -> None:
    order = work(Turns(quantum=1000), {1: 100, 2: 100}, {1: 1, 2: 1}, 200)
    changes = sum(a != b for a, b in pairwise(order))
    assert 15 <= changes <= 25
    assert abs(Counter(order)[1] - 100) <= 12


def test_long_rows_take_no_more_than_their_share() -> None:
    order = work(Turns(quantum=1000), {1: 1000, 2: 100}, {1: 1, 2: 1}, 220)
    tokens = {1: order.count(1) * 1000, 2: order.count(2) * 100}
    assert 0.8 < tokens[1] / tokens[2] < 1.3


def test_weights() -> None:
    order = work(Turns(quantum=500), {1: 100, 2: 100}, {1: 3, 2: 1}, 400)
    assert 2.5 < order.count(1) / order.count(2) < 3.5


def test_a_row_that_cost_as_much_as_a_server_may_say_is_made_up_for_at_once() -> None:
    turns, weights = Turns(), {1: 1, 2: 3}
    for job in weights:
        charged = turns.start(job)
        turns.finish(job, charged=charged, tokens=2.0**60)
    assert turns.pick(weights) in weights
    assert max(turns._credit.values()) <= 3 * QUANTUM_TOKENS


def test_a_job_without_rows_saves_nothing_up() -> None:
    turns = Turns(quantum=1000)
    work(turns, {1: 100}, {1: 1}, 500)
    order = work(turns, {1: 100, 2: 100}, {1: 1, 2: 1}, 100)
    assert 35 <= order.count(2) <= 65
