"""How long a server that refuses wants to be left alone."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.llm.failures.retry_after import LONGEST_SECONDS, retry_wait, seconds
from tests.cpu_time import bounded_cpu


@pytest.mark.parametrize(
    ("headers", "message", "wait"),
    [
        ({"retry-after": "7"}, "", 7),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": ""}, "", None),
        ({}, "", None),
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        ({"llm_provider-retry-after": "60"}, "", 60),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, "", 360),
        (
            {
                "x-ratelimit-reset-requests": "8h",
                "x-ratelimit-remaining-requests": "9000",
                "x-ratelimit-reset-tokens": "7.66s",
                "x-ratelimit-remaining-tokens": "0",
            },
            "",
            7.66,
        ),
        ({"x-ratelimit-reset-requests": "8h", "x-ratelimit-reset-tokens": "20ms"}, "", 0.02),
        ({}, "Rate limit reached. Please try again in 6m0s. Visit https://x", 360),
        ({}, "Please try again in 1.5s.", 1.5),
        ({}, "Try again in 60 seconds. Passed model=m", 60),
        ({}, "Please retry after 30 seconds.", 30),
        ({}, "Try again in 2 hours and be kind", 7200),
        ({}, "Try again later.", None),
    ],
)
def test_the_spellings(headers: dict[str, str], message: str, wait: float | None) -> None:
    assert retry_wait(headers, message) == (None if wait is None else pytest.approx(wait))


def test_a_date_to_come_and_a_moment_since_1970() -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < (retry_wait({"retry-after": at}) or 0) <= 30
    assert 25 < (retry_wait({"x-ratelimit-reset": str(time.time() + 30)}) or 0) <= 30
    assert 25 < (retry_wait({"x-ratelimit-reset": str((time.time() + 30) * 1000)}) or 0) <= 30


@given(st.text(max_size=40) | st.floats().map(str) | st.integers().map(str), st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_wait_within_a_day_or_none(value: str, message: str) -> None:
    for name in ("retry-after", "retry-after-ms", "x-ratelimit-reset-tokens"):
        wait = retry_wait({name: value}, f"try again in {message}")
        assert wait is None or 0 <= wait <= LONGEST_SECONDS


def test_linear_time() -> None:
    with bounded_cpu():
        retry_wait({"retry-after": "1s" * 100_000}, "try again in " + "1s " * 100_000)
        seconds("9" * 100_000)
