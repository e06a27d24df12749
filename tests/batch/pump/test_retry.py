"""Retry decisions: what a failed request means for its row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.batch.pump import retry
from apps.batch.store.row_events import PendingRow
from apps.llm import errors

ROW = PendingRow(1, 2, 0, 0, None)


@given(st.integers(1, 60))
def test_backoff_seconds_doubles_with_jitter_up_to_its_limit(attempt: int) -> None:
    longest = min(retry.BACKOFF_LIMIT_SECONDS, retry.BACKOFF_SECONDS * 2 ** (attempt - 1))
    assert longest / 2 <= retry.backoff_seconds(attempt) <= longest


@pytest.mark.parametrize("error", [errors.Unreachable("away"), errors.Unauthorized("key")])
def test_returned_counts_no_attempt_where_the_row_is_not_at_fault(error: errors.LLMError) -> None:
    found = retry.returned(ROW, error)
    assert (found.counts, found.permanent, found.wait_s, found.reason) == (False, False, 0.0, "")


def test_returned_waits_as_long_as_a_busy_server_asks() -> None:
    found = retry.returned(ROW, errors.Busy("Too many requests.", 10.0))
    assert 10 <= found.wait_s <= 15
    assert (found.counts, found.permanent) == (False, False)


def test_returned_counts_a_transient_failure_and_ends_a_permanent_one() -> None:
    transient = retry.returned(ROW, errors.ServerFailed("It failed."))
    assert (transient.counts, transient.permanent) == (True, False)
    permanent = retry.returned(ROW, errors.PromptTooLong(9, 5))
    assert (permanent.permanent, permanent.code) == (True, "prompt_too_long")
