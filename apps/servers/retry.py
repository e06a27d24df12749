"""Decides whether a person's failed request is retried, without the person seeing it fail.

Each cause has its own limit. Rows of jobs have their own policy, because nobody waits for them.
"""

import math
import time
from dataclasses import dataclass

from apps.llm import errors
from apps.servers.loading.load_model import LOAD_SECONDS
from apps.servers.models import Server, State

LOADING_RETRY_SECONDS = 1.0
# The first overflow shows that the slots share one cache; a second may come from other programs.
MAX_OVERFLOWS = 2
# A server that was ready a moment ago and is gone is most likely being restarted.
RESTART_SECONDS = 10.0
RESTART_RETRY_SECONDS = 0.5
# A person waits this long in total for a server that refuses requests for now.
BUSY_SECONDS = 60.0
BUSY_MARGIN_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RetryPause:
    seconds: float
    reason: str = ""
    """Why the person waits, as a sentence; empty: the model is being loaded."""


class RetryPolicy:
    """The retries of one request, from its first attempt on."""

    def __init__(self, server: Server) -> None:
        self._was_ready = server.state == State.READY
        self._started_at = time.monotonic()
        self._overflows = self._refusals = 0
        self._is_gone = False

    def next_pause(self, error: errors.LLMError, *, has_begun: bool) -> RetryPause | None:
        """The pause before the next attempt; None: the request has failed.

        Args:
            has_begun: True if a part of the answer had arrived.
        """
        waited = time.monotonic() - self._started_at
        match error:
            case errors.PoolExhausted():
                self._overflows += 1
                return RetryPause(0.0) if self._overflows <= MAX_OVERFLOWS else None
            case errors.Busy():
                self._refusals += 1
                wait = error.retry_after or 2.0**self._refusals
                if has_begun or waited + wait > BUSY_SECONDS:
                    return None
                # A request in the very second that the server named is refused again.
                wait += BUSY_MARGIN_SECONDS
                return RetryPause(wait, f"{error} Trying again in {math.ceil(wait)} s…")
            case errors.Loading():
                is_over = has_begun or waited > LOAD_SECONDS
                return None if is_over else RetryPause(LOADING_RETRY_SECONDS)
            case errors.BackendGone() if self._was_ready and not (has_begun or self._is_gone):
                # A proxy may have used a connection that the server behind it had just closed.
                self._is_gone = True
                return RetryPause(RESTART_RETRY_SECONDS, f"{error} Trying again…")
            case errors.BackendGone() | errors.BadAddress() | errors.CertificateRefused():
                return None
            case errors.Unreachable() if self._was_ready:
                is_over = has_begun or waited > RESTART_SECONDS
                reason = "The model server stopped answering. Trying again…"
                return None if is_over else RetryPause(RESTART_RETRY_SECONDS, reason)
        return None
