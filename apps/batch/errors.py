"""Errors that features catch when they work with jobs."""


class WrongState(Exception):
    """The job or row is in a state that does not allow the action. The message names the state."""


class PostProcessingBlocked(Exception):
    """Accepted rows cannot be compared yet. The message says what the job waits for."""
