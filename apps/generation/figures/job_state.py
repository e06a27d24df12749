"""The state of a job in one word, with its colour and icon."""

from collections.abc import Mapping
from dataclasses import dataclass

from apps.batch.models import BatchStatus, ItemStatus


@dataclass(frozen=True, slots=True)
class JobState:
    """How a job is shown in lists and on its page."""

    word: str
    tone: str
    """Colour of its tag: accent, good, warn, bad or ""."""
    icon: str


_STATES = {
    BatchStatus.QUEUED: JobState("Queued", "", "clock"),
    BatchStatus.RUNNING: JobState("Running", "accent", "running"),
    BatchStatus.PAUSED: JobState("Paused", "warn", "pause"),
    BatchStatus.DONE: JobState("Done", "good", "done"),
    BatchStatus.CANCELLED: JobState("Cancelled", "warn", "stopped"),
    BatchStatus.FAILED: JobState("Failed", "bad", "failed"),
}


def job_state(status: str, counts: Mapping[str, int], wanted: int) -> JobState:
    """Return the state that a person sees: done without one accepted row is failed.

    Args:
        counts: rows by status.
        wanted: rows that were asked for; fewer accepted ones are no full success.
    """
    found = _STATES[BatchStatus(status)]
    if status != BatchStatus.DONE:
        return found
    accepted = counts[ItemStatus.ACCEPTED]
    if not accepted:
        return _STATES[BatchStatus.FAILED]
    return found if accepted >= wanted else JobState(found.word, "warn", "stopped")
