"""What a failed request means for its row."""

import random

from apps.batch.store.store import PutBack, Row
from apps.llm import errors

BACKOFF_SECONDS = 2.0
BACKOFF_LIMIT_SECONDS = 60.0
# A server that refuses a request without saying for how long is asked again after this.
REFUSED_SECONDS = 1.0

# The row is not to blame and nothing was done for it: no attempt is counted, the pump waits.
NOT_THE_ROW = (errors.Unreachable, errors.Loading)
# The server's fault or the row's: the rows after it tell.
SERVER_OR_ROW = (errors.ServerFailed, errors.Stalled, errors.CutOff)
# No row of this job can succeed until a person has changed something. A model that did not start is
# one of these: each further row would have the server try to load it again.
NOT_THIS_JOB = (
    errors.Unauthorized,
    errors.QuotaExceeded,
    errors.UnknownModel,
    errors.NotSupported,
    errors.NotLoaded,
    errors.LoadFailed,
)


def put_back(row: Row, error: errors.LLMError) -> PutBack:
    """The row as it goes back: untouched, to be asked again later, or never."""
    if isinstance(error, NOT_THE_ROW + NOT_THIS_JOB):
        return PutBack(row)
    if isinstance(error, errors.Busy):
        wait = error.retry_after or REFUSED_SECONDS
        return PutBack(row, str(error), wait_s=wait * random.uniform(1, 1.5))  # noqa: S311
    if error.transient:
        wait = backoff(row.attempts + 1)
        return PutBack(row, str(error), error.code, wait_s=wait, counts=True)
    return PutBack(row, str(error), error.code, permanent=True)


def backoff(attempt: int) -> float:
    """Seconds before attempt number `attempt` + 1: exponential, with full jitter."""
    longest = min(BACKOFF_LIMIT_SECONDS, BACKOFF_SECONDS * 2 ** (attempt - 1))
    return random.uniform(longest / 2, longest)  # noqa: S311 - jitter
