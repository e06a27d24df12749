"""When a person's question that failed is asked once more, without the person seeing it fail.

For as long as it helps and no longer: a limit for each cause. Rows of jobs have a policy of their
own, because nobody waits for them.
"""

import math
import time
from dataclasses import dataclass

from apps.llm import errors
from apps.servers.loading.load_model import LOAD_SECONDS
from apps.servers.models import Server, State

LOADING_AGAIN_SECONDS = 1.0
# The first overflow shows that the slots share one cache; a second may come from other programs.
OVERFLOWS = 2
# A server that was ready a moment ago and is gone is most likely being started again.
AWAY_SECONDS = 10.0
AWAY_AGAIN_SECONDS = 0.5
# So long a person waits for a server that takes no more requests for now, if that is enough.
BUSY_SECONDS = 60.0
BUSY_MORE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float
    reason: str = ""
    """Why the person waits, as a sentence; empty: the model is being loaded."""


class Patience:
    """Of one question, from its first try on."""

    def __init__(self, server: Server) -> None:
        self._was_ready = server.state == State.READY
        self._began = time.monotonic()
        self._overflows = self._refusals = 0

    def after(self, error: errors.LLMError, *, has_begun: bool) -> Pause | None:
        """How long to wait before it is asked again; None: it has failed.

        Args:
            has_begun: whether a part of the answer had come.
        """
        waited = time.monotonic() - self._began
        match error:
            case errors.PoolExhausted():
                self._overflows += 1
                return Pause(0.0) if self._overflows <= OVERFLOWS else None
            case errors.Busy():
                self._refusals += 1
                wait = error.retry_after or 2.0**self._refusals
                if has_begun or waited + wait > BUSY_SECONDS:
                    return None
                # A little more: who asks in the very second is refused again.
                wait += BUSY_MORE_SECONDS
                return Pause(wait, f"{error} Trying again in {math.ceil(wait)} s…")
            case errors.Loading():
                is_over = has_begun or waited > LOAD_SECONDS
                return None if is_over else Pause(LOADING_AGAIN_SECONDS)
            case errors.BackendGone() | errors.BadAddress() | errors.CertificateRefused():
                return None
            case errors.Unreachable() if self._was_ready:
                is_over = has_begun or waited > AWAY_SECONDS
                reason = "The model server stopped answering. Trying again…"
                return None if is_over else Pause(AWAY_AGAIN_SECONDS, reason)
        return None
