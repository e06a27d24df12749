"""The score that a share of in-scope texts is at or above, from many rows and from few."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.evaluation.thresholds.score_limit import (
    score_limit,
    student_quantile,
    tolerance_factor,
)

SHARES = st.floats(0.5, 0.999)
SCORES = st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=200)


def floats(values: list[float]) -> np.ndarray:
    return np.asarray(values, dtype=np.float32)


@pytest.mark.parametrize("scores", [[], [0.5]])
def test_one_row_says_nothing(scores: list[float]) -> None:
    assert score_limit(floats(scores), 0.99) == -float("inf")


def test_keeping_all_is_no_limit() -> None:
    assert score_limit(floats([1.0, 2.0, 3.0]), 1.0) == -float("inf")


@given(SCORES, SHARES)
def test_the_share_of_the_rows_themselves_is_kept(values: list[float], kept: float) -> None:
    scores = floats(values)
    limit = score_limit(scores, kept)
    below = int((scores < limit).sum())
    assert below <= (1 - kept) * (len(scores) + 1) + 1e-6


@given(SCORES, SHARES, SHARES)
def test_keeping_more_never_raises_the_limit_of_many_rows(
    values: list[float], one: float, other: float
) -> None:
    scores = floats(values * 20)  # the order of the rows says it
    less, more = sorted([one, other])
    if (1 - more) * (len(scores) + 1) >= 1:
        assert score_limit(scores, more) <= score_limit(scores, less)


@given(SCORES, SHARES)
def test_the_order_of_the_rows_does_not_matter(values: list[float], kept: float) -> None:
    forward, backward = floats(values), floats(values[::-1])
    assert score_limit(forward, kept) == pytest.approx(score_limit(backward, kept), abs=1e-3)


@pytest.mark.parametrize(
    ("share", "freedom", "table"),
    [(0.05, 5, 2.015), (0.05, 30, 1.697), (0.01, 10, 2.764), (0.025, 20, 2.086)],
)
def test_quantiles_of_student_are_those_of_the_tables(
    share: float, freedom: int, table: float
) -> None:
    assert student_quantile(share, freedom) == pytest.approx(table, abs=0.02)


def test_a_handful_of_rows_has_no_tolerance_limit_and_more_rows_a_closer_one() -> None:
    assert tolerance_factor(0.03, 3) == float("inf")
    factors = [tolerance_factor(0.03, rows) for rows in (10, 30, 100, 1000)]
    assert factors == sorted(factors, reverse=True)
