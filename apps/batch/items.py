"""Making rows, many at once."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db import connection

from apps.batch.models import Batch, Item

INSERT_ROWS = 2000


def add_items(batch: Batch, inputs: Iterable[Any], *, first: int = 0) -> int:
    """One row per input, in order, from the index `first` on; returns how many.

    Django prepares one row, the driver inserts the others like it: bulk_create spends 20 times as
    long on making objects and asking each field of each.
    """
    fields = [field for field in Item._meta.local_concrete_fields if not field.primary_key]
    names = [field.name for field in fields]
    like = Item(batch=batch, index=0)
    values = [field.get_db_prep_save(field.value_from_object(like), connection) for field in fields]
    at_index, at_input = names.index("index"), names.index("input")

    def rows() -> Iterator[list[Any]]:
        for index, given in enumerate(inputs, start=first):
            row = values.copy()
            row[at_index] = index
            row[at_input] = fields[at_input].get_db_prep_save(given, connection)
            yield row

    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    insert = f"INSERT INTO {quote(Item._meta.db_table)} ({columns}) VALUES ({marks})"  # noqa: S608 - names of ours
    source, count = rows(), 0
    with connection.cursor() as cursor:
        while chunk := list(islice(source, INSERT_ROWS)):
            cursor.executemany(insert, chunk)
            count += len(chunk)
    return count


def next_index(batch: Batch) -> int:
    """The index after the last one."""
    last = Item.objects.filter(batch=batch).order_by("-index").values_list("index", flat=True)
    found = last.first()
    return 0 if found is None else found + 1
