"""Retry decisions: what a failed request means for its row."""

import random

from apps.batch.store.row_events import PendingRow, Returned
from apps.llm import errors

BACKOFF_SECONDS = 2.0
BACKOFF_LIMIT_SECONDS = 60.0
# Pause after a refusal without a Retry-After.
REFUSED_SECONDS = 1.0

# Not the row's fault, and the server did nothing: no attempt counts, the pump waits.
NOT_THE_ROW = (errors.Unreachable, errors.Loading)
# The fault of the server or of the row: the circuit breaker tells.
SERVER_OR_ROW = (errors.ServerFailed, errors.Stalled, errors.CutOff)
# No row of this job can succeed until someone has changed something. A model that did not start
# is among them: each further row would make the server load it again.
NOT_THIS_JOB = (
    errors.Unauthorized,
    errors.QuotaExceeded,
    errors.UnknownModel,
    errors.NotSupported,
    errors.NotLoaded,
    errors.LoadFailed,
)


def returned(row: PendingRow, error: errors.LLMError) -> Returned:
    """Return the row untouched, for a later attempt, or as failed."""
    if isinstance(error, NOT_THE_ROW + NOT_THIS_JOB):
        return Returned(row)
    if isinstance(error, errors.Busy):
        wait = error.retry_after or REFUSED_SECONDS
        return Returned(row, str(error), wait_s=wait * random.uniform(1, 1.5))  # noqa: S311
    if error.transient:
        wait = backoff_seconds(row.attempts + 1)
        return Returned(row, str(error), error.code, wait_s=wait, counts=True)
    return Returned(row, str(error), error.code, permanent=True)


def backoff_seconds(attempt: int) -> float:
    """Return the seconds after a failed attempt: exponential, with jitter."""
    longest = min(BACKOFF_LIMIT_SECONDS, BACKOFF_SECONDS * 2 ** (attempt - 1))
    return random.uniform(longest / 2, longest)  # noqa: S311 - jitter
