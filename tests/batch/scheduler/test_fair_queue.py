"""Deficit round robin in tokens."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from apps.batch.scheduler.fair_queue import QUANTUM_TOKENS, FairQueue


def work(queue: FairQueue, costs: dict[int, int], weights: dict[int, int], rows: int) -> list[int]:
    order = []
    for _ in range(rows):
        job = queue.pick(weights)
        charged = queue.charge(job)
        queue.correct(job, charged=charged, tokens=costs[job])
        order.append(job)
    return order


def test_pick_returns_the_only_job() -> None:
    assert set(work(FairQueue(), {1: 100}, {1: 1}, 200)) == {1}


def test_pick_stays_on_one_job_for_a_quantum() -> None:
    order = work(FairQueue(quantum=1000), {1: 100, 2: 100}, {1: 1, 2: 1}, 200)
    changes = sum(a != b for a, b in pairwise(order))
    assert 15 <= changes <= 25
    assert abs(Counter(order)[1] - 100) <= 12


def test_pick_shares_tokens_and_not_rows() -> None:
    order = work(FairQueue(quantum=1000), {1: 1000, 2: 100}, {1: 1, 2: 1}, 220)
    tokens = {1: order.count(1) * 1000, 2: order.count(2) * 100}
    assert 0.8 < tokens[1] / tokens[2] < 1.3


def test_pick_shares_by_weight() -> None:
    order = work(FairQueue(quantum=500), {1: 100, 2: 100}, {1: 3, 2: 1}, 400)
    assert 2.5 < order.count(1) / order.count(2) < 3.5


def test_pick_skips_rounds_after_a_row_of_enormous_cost() -> None:
    queue, weights = FairQueue(), {1: 1, 2: 3}
    for job in weights:
        charged = queue.charge(job)
        queue.correct(job, charged=charged, tokens=2.0**60)
    assert queue.pick(weights) in weights
    assert max(map(queue.credit_of, weights)) <= 3 * QUANTUM_TOKENS


def test_pick_gives_an_idle_job_no_savings() -> None:
    queue = FairQueue(quantum=1000)
    work(queue, {1: 100}, {1: 1}, 500)
    order = work(queue, {1: 100, 2: 100}, {1: 1, 2: 1}, 100)
    assert 35 <= order.count(2) <= 65


@given(
    weights=st.dictionaries(st.integers(1, 5), st.integers(1, 8), min_size=2),
    costs=st.lists(st.integers(1, 400), min_size=5, max_size=5),
)
def test_pick_gives_each_job_its_share_of_tokens(weights: dict[int, int], costs: list[int]) -> None:
    """After many rows no job is more than two turns and two rows away from its fair share."""
    quantum = 1_000
    queue = FairQueue(quantum=quantum)
    order = work(queue, dict(enumerate(costs, start=1)), weights, 2_000)
    turns = {job: order.count(job) * costs[job - 1] / (quantum * weights[job]) for job in weights}
    slack = max(max(costs) / quantum, 200 / quantum)
    assert max(turns.values()) - min(turns.values()) <= 2 + 4 * slack


@given(st.lists(st.sets(st.integers(1, 4), min_size=1), min_size=1, max_size=80))
def test_pick_returns_a_job_that_is_ready(ready: list[set[int]]) -> None:
    queue = FairQueue(quantum=500)
    for jobs in ready:
        job = queue.pick(dict.fromkeys(jobs, 1))
        assert job in jobs
        queue.correct(job, charged=queue.charge(job), tokens=300)
