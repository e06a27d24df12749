"""New rows of a job, many at once."""

from collections.abc import Iterable

from apps.batch.models import Batch, Item
from apps.core.schemas.json_types import JsonValue
from apps.runtime.bulk_insert import bulk_insert, insert_numbered

INSERT_ROWS = 2000  # of one transaction: others write meanwhile


def add_items(batch: Batch, inputs: Iterable[JsonValue], *, first: int = 0) -> int:
    """Add one row per input, in order, from the index `first` on; return how many."""
    rows = ((batch.pk, index, given) for index, given in enumerate(inputs, start=first))
    return bulk_insert(Item, ("batch", "index", "input"), rows)


def add_empty_items(batch: Batch, count: int) -> None:
    """Add this many rows without an input."""
    insert_numbered(Item, ("batch",), (batch.pk,), number="index", count=count)


def next_index(batch: Batch) -> int:
    """Return the index after the last one."""
    last = Item.objects.filter(batch=batch).order_by("-index").values_list("index", flat=True)
    found = last.first()
    return 0 if found is None else found + 1
