"""Reads how long to wait before the next request, in all spellings of servers. Pure."""

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Longer than a day is a mistake, or a date of another kind.
LONGEST_SECONDS = 86_400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_UNIT = r"(?:ms|milliseconds?|hours?|h|minutes?|mins?|m|seconds?|secs?|s|days?|d)"
_PART = rf"\d{{1,9}}(?:\.\d{{1,9}})?\s*{_UNIT}"
_DURATION = re.compile(rf"(?:{_PART}\s*)+", re.IGNORECASE)
_IN_TEXT = re.compile(
    rf"(?:try again|retry|again)\s*(?:after|in)\s*:?\s*((?:{_PART}\s*)+)\b", re.IGNORECASE
)
_RESETS = re.compile(r"x-ratelimit-reset(-[a-z-]+)?")
_EPOCH = 1_000_000_000.0


def retry_wait(headers: Mapping[str, str], message: str = "") -> float | None:
    """Return the seconds until the server accepts requests again; None where it names none.

    Args:
        headers: with names in lower case.
        message: the text of the refusal, which may name the time.
    """
    for name in ("retry-after-ms", "retry-after", "llm_provider-retry-after"):
        value = headers.get(name, "")
        wait = _ms(value) if name.endswith("-ms") else seconds(value)
        if wait is not None:
            return wait
    if (found := _IN_TEXT.search(message)) is not None:
        return seconds(found[1])
    return _reset(headers)


def seconds(value: str) -> float | None:
    """Parse a header's "7", "0.5", "6m0s", "20ms", date or Unix time; None for anything else."""
    value = value.strip()[:100]
    try:
        return _bounded(float(value))
    except ValueError:
        pass
    if _DURATION.fullmatch(value):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)", value)
        return _bounded(sum(float(number) * _unit(word) for number, word in parts))
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at.replace(tzinfo=at.tzinfo or UTC)
    return _bounded(max(0.0, (at - datetime.now(UTC)).total_seconds()))


def _ms(value: str) -> float | None:
    found = seconds(value)
    return None if found is None else found / 1000


def _reset(headers: Mapping[str, str]) -> float | None:
    """Return the wait until the exhausted limit resets; the shortest one where none is marked."""
    waits, exhausted = [], []
    for name, value in headers.items():
        found = _RESETS.fullmatch(name)
        wait = seconds(value) if found else None
        if found is None or wait is None:
            continue
        waits.append(wait)
        if headers.get(f"x-ratelimit-remaining{found[1] or ''}", "").strip() in {"0", "0.0"}:
            exhausted.append(wait)
    return max(exhausted) if exhausted else min(waits, default=None)


def _unit(word: str) -> float:
    word = word.lower()
    return _UNITS["ms"] if word.startswith(("ms", "milli")) else _UNITS[word[0]]


def _bounded(value: float) -> float | None:
    if value >= _EPOCH * 1000:
        value /= 1000
    if value >= _EPOCH:
        value -= time.time()
    if not math.isfinite(value) or value < 0:
        return None
    return min(value, LONGEST_SECONDS)
