"""Events of a row between the pump that works on it and the database."""

from dataclasses import dataclass, field

from apps.batch.handlers import RowOutcome
from apps.core.schemas.json_types import JsonValue
from apps.llm.events import Usage


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A row as it was read."""

    pk: int
    batch_id: int
    index: int
    attempts: int
    input: JsonValue


@dataclass(frozen=True, slots=True)
class Started:
    """The row is sent now. Counts as an attempt, so that a row that kills the worker is noticed."""

    row: PendingRow
    model: str


@dataclass(frozen=True, slots=True)
class Finished:
    row: PendingRow
    outcome: RowOutcome
    active_seconds: float


@dataclass(frozen=True, slots=True)
class Returned:
    """The row goes back to pending, or fails."""

    row: PendingRow
    reason: str = ""
    code: str = ""
    wait_s: float = 0.0
    counts: bool = False
    """True if the attempt counts; after the last counted one the row fails."""
    permanent: bool = False
    """True if another attempt would change nothing: the row fails at once."""
    keeps_claim: bool = False
    """True if the same pump starts it again next."""
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0))


RowEvent = Started | Finished | Returned
