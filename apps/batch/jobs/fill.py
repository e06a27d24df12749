"""A job whose rows come in pieces: no pump works on it before it has all of them.

A transaction holds SQLite's write lock: made in one, the rows of a large job keep everybody else
from writing for seconds.
"""

from collections.abc import Iterable

from apps.batch.jobs.lifecycle import transition
from apps.batch.models import Batch, BatchStatus
from apps.batch.store.items import add_items
from apps.core.schemas.json_types import JsonValue


def append_rows(batch: Batch, inputs: Iterable[JsonValue]) -> None:
    """Add one row per input after the last one, in the transaction of the caller.

    The number of rows is stored with them: who goes on after a crash leaves out so many inputs.
    """
    batch.total += add_items(batch, inputs, first=batch.total)
    batch.save(update_fields=["total"])


def queue_filled(batch: Batch) -> None:
    """Queue a job that has all its rows.

    Raises:
        WrongState: it was cancelled meanwhile.
    """
    transition(batch, (BatchStatus.PAUSED,), BatchStatus.QUEUED, "")
