import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.statistics.confidence_interval import wilson_interval


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_interval_is_that_of_the_literature(
    right: int, total: int, low: float, high: float
) -> None:
    assert wilson_interval(right, total) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_holds_the_share(counts: tuple[int, int]) -> None:
    right, total = counts
    low, high = wilson_interval(right, total)
    assert 0 <= low <= right / total + 1e-9
    assert right / total - 1e-9 <= high <= 1


@given(st.integers(1, 2_000), st.integers(2, 10))
def test_wilson_interval_narrows_with_more_rows(total: int, times: int) -> None:
    right = total // 2
    low, high = wilson_interval(right, total)
    narrow_low, narrow_high = wilson_interval(right * times, total * times)
    assert narrow_high - narrow_low < high - low


@given(st.integers(1, 2_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_mirrors_wrong_rows(counts: tuple[int, int]) -> None:
    right, total = counts
    low, high = wilson_interval(right, total)
    assert wilson_interval(total - right, total) == pytest.approx((1 - high, 1 - low), abs=1e-9)
