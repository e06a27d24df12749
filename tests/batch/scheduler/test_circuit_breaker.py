"""Circuit breaker: a failing server is told from failing rows."""

from hypothesis import given
from hypothesis import strategies as st

from apps.batch.scheduler.circuit_breaker import (
    FAILED_ROWS_TO_OPEN,
    PAUSE_SECONDS,
    CircuitBreaker,
)

EVENTS = st.lists(st.one_of(st.integers(1, 9), st.none()), max_size=60)
"""Keys of failed rows; None is a success."""


@given(EVENTS)
def test_record_failure_opens_after_different_rows_without_a_success(
    events: list[int | None],
) -> None:
    breaker = CircuitBreaker()
    failed: set[int] = set()
    for row in events:
        if row is None:
            breaker.record_success()
            failed.clear()
            assert not breaker.in_trouble
        else:
            failed.add(row)
            assert breaker.record_failure(row) == (len(failed) >= FAILED_ROWS_TO_OPEN)
            assert breaker.in_trouble


def test_record_failure_of_one_row_never_opens() -> None:
    breaker = CircuitBreaker()
    assert not any(breaker.record_failure(1) for _ in range(100))


@given(st.integers(1, 40))
def test_next_pause_doubles_up_to_its_limit(times: int) -> None:
    breaker = CircuitBreaker()
    first, longest = PAUSE_SECONDS
    for at in range(times):
        full = min(longest, first * 2**at)
        assert full / 2 <= breaker.next_pause() <= full
    breaker.record_success()
    assert breaker.next_pause() <= first


def test_half_open_lets_one_row_through_and_trusts_after_quiet_seconds() -> None:
    breaker = CircuitBreaker()
    assert (breaker.is_trusted, breaker.max_in_flight) == (True, None)
    breaker.half_open()
    widths = []
    while not breaker.is_trusted:
        widths.append(breaker.max_in_flight)
        breaker.record_quiet_second()
    assert widths == [1, 2]
    assert breaker.max_in_flight == 4
    breaker.record_success()
    assert breaker.max_in_flight is None
