"""Errors that features catch when they work with jobs."""

from apps.core.errors import DomainError


class WrongState(DomainError):
    """The job or row is in a state that does not allow the action. The message names the state."""

    status = 409
    code = "wrong_state"


class PostProcessingBlocked(Exception):
    """Accepted rows cannot be compared yet. The message says what the job waits for."""


class RowPostponed(Exception):
    """No row of the job may be sent for a while. The message says why; no attempt counts."""

    def __init__(self, reason: str, wait_s: float) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
