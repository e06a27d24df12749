"""What is computed from what was measured."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.llm.permits import FIRST_TOKEN_BOUNDS_MS
from apps.monitoring.history.measurement import BUCKETS, Measurement, since, total


def with_first_tokens(**counts: int) -> Measurement:
    return Measurement.from_counts({f"first_{name[1:]}": count for name, count in counts.items()})


def test_nothing_measured_is_not_reported() -> None:
    nothing = Measurement()
    assert {
        *(nothing.prompt_per_second, nothing.completion_per_second, nothing.speed),
        *(nothing.cache_share, nothing.busy_slots, nothing.queue, nothing.first_token_ms(0.5)),
    } == {None}


def test_cache_share_counts_only_answers_that_reported_it() -> None:
    silent = Measurement(seconds=30, prompt=500)
    assert silent.cache_share is None
    assert (
        silent + Measurement(seconds=30, prompt=100, reported=100, cached=90)
    ).cache_share == 0.9


def test_sum_has_the_rates_of_the_whole_time() -> None:
    whole = Measurement(seconds=30, completion=300, timed=300, timed_ms=6000) + Measurement(
        seconds=10, readings=1, busy=2, waiting=1
    )
    assert (whole.completion_per_second, whole.speed) == (7.5, 50)
    assert (whole.busy_slots, whole.queue) == (2, 1)


def test_percentiles_lie_within_the_bucket_of_their_request() -> None:
    bounds = FIRST_TOKEN_BOUNDS_MS
    measured = with_first_tokens(_2=90, _9=10) + Measurement()
    assert len(measured.first_tokens) == BUCKETS
    median, slow = measured.first_token_ms(0.5), measured.first_token_ms(0.95)
    assert median is not None
    assert bounds[1] < median <= bounds[2]
    assert slow == pytest.approx((bounds[8] + bounds[9]) / 2)


def test_percentile_beyond_the_last_bound_is_that_bound() -> None:
    last = with_first_tokens(**{f"_{BUCKETS - 1}": 3})
    assert last.first_token_ms(0.5) == FIRST_TOKEN_BOUNDS_MS[-1]


def test_totals_that_shrank_began_anew() -> None:
    assert since({"prompt": 10, "cached": 5}, {"prompt": 30, "cached": 5}) == {"prompt": 20}
    assert since({"prompt": 10, "cached": 5}, {"prompt": 12}) == {"prompt": 12}


buckets = st.lists(st.integers(0, 1_000), min_size=BUCKETS, max_size=BUCKETS)
measured = st.builds(
    Measurement, requests=st.integers(0, 10**6), seconds=st.integers(0, 60), first_tokens=buckets
)


@given(st.lists(measured, min_size=1, max_size=5), st.randoms())
def test_measurements_can_be_added_in_any_order(parts: list[Measurement], random: Random) -> None:
    mixed = random.sample(parts, len(parts))
    assert total([None, *mixed]) == total(parts)


@given(buckets, st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_larger_share_of_requests_takes_no_less_time(
    counts: list[int], one: float, other: float
) -> None:
    found = Measurement(first_tokens=counts)
    fast, slow = found.first_token_ms(min(one, other)), found.first_token_ms(max(one, other))
    if not any(counts):
        assert (fast, slow) == (None, None)
    else:
        assert fast is not None
        assert slow is not None
        assert 0 <= fast <= slow + 1e-6
        assert slow <= FIRST_TOKEN_BOUNDS_MS[-1] + 1e-6
