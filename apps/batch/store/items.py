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
    long on making objects and asking each field of each. PostgreSQL takes them as a stream.
    """
    fields, values = _like(batch)
    names = [field.name for field in fields]
    at_index, at_input = names.index("index"), names.index("input")

    def rows() -> Iterator[list[Any]]:
        for index, given in enumerate(inputs, start=first):
            row = values.copy()
            row[at_index] = index
            row[at_input] = fields[at_input].get_db_prep_save(given, connection)
            yield row

    insert = f"INSERT INTO {_place(fields)} VALUES ({', '.join(['%s'] * len(fields))})"  # noqa: S608 - names of ours
    source, count = rows(), 0
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {_place(fields)} FROM STDIN") as copy:
                for count, row in enumerate(source, start=1):  # noqa: B007 - how many there were
                    copy.write_row(row)
            return count
        while chunk := list(islice(source, INSERT_ROWS)):
            cursor.executemany(insert, chunk)
            count += len(chunk)
    return count


def add_empty_items(batch: Batch, count: int, *, first: int = 0) -> None:
    """So many rows without an input, from the index `first` on: made by the database itself."""
    fields, values = _like(batch)
    at_index = [field.name for field in fields].index("index")
    marks = ["%s"] * len(fields)
    marks[at_index] = "made.number"
    if not count:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_place(fields)} "  # noqa: S608 - names of ours
            "WITH RECURSIVE made(number) AS "
            "(SELECT %s UNION ALL SELECT number + 1 FROM made WHERE number < %s) "
            f"SELECT {', '.join(marks)} FROM made",
            [first, first + count - 1, *values[:at_index], *values[at_index + 1 :]],
        )


def _like(batch: Batch) -> tuple[list[Any], list[Any]]:
    """The columns of a new row and what is in them."""
    fields = [field for field in Item._meta.local_concrete_fields if not field.primary_key]
    item = Item(batch=batch, index=0)
    return fields, [
        field.get_db_prep_save(field.value_from_object(item), connection) for field in fields
    ]


def _place(fields: list[Any]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    return f"{quote(Item._meta.db_table)} ({columns})"


def next_index(batch: Batch) -> int:
    """The index after the last one."""
    last = Item.objects.filter(batch=batch).order_by("-index").values_list("index", flat=True)
    found = last.first()
    return 0 if found is None else found + 1
