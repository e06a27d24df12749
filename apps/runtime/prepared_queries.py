"""Queries that Django puts together once, for what every question of a person comes to.

Django compiles a query anew each time it is run, which is most of what a small one costs. Here that
is done at the first use; afterwards only the values change. What is looked for is still said by a
queryset: an owner's rows are still found by `owned_by`.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.expressions import RawSQL
from django.db.models.query import get_related_populators  # type: ignore[attr-defined]
from django.db.models.sql.compiler import SQLCompiler

M = TypeVar("M", bound=models.Model)
Fields = Sequence["models.Field[Any, Any]"]
LARGEST = models.BigIntegerField.MAX_BIGINT


@dataclass(frozen=True)
class _Value:
    """Stands for a value in a query that is being compiled."""

    number: int


class Lookup(Generic[M]):
    """The rows a queryset finds, by values that come later.

    _ANSWERS = Lookup(lambda conversation: Message.objects.filter(conversation=conversation))
    _ANSWERS.all(17)

    Values are numbers and texts, and go to the database as they are. `select_related` works.
    """

    def __init__(self, queryset: Callable[..., models.QuerySet[M]]) -> None:
        self._queryset = queryset

    def first(self, *values: int | str) -> M | None:
        return next(iter(self.all(*values)), None)

    def all(self, *values: int | str) -> list[M]:
        if any(isinstance(value, int) and not -LARGEST <= value <= LARGEST for value in values):
            return []  # no number in the database is so large
        sql, given, read = self._compiled
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute(sql, [values[p.number] if isinstance(p, _Value) else p for p in given])
            rows = cursor.fetchall()
        return [read(list(row)) for row in rows]

    @cached_property
    def _compiled(self) -> tuple[str, Sequence[Any], Callable[[list[Any]], M]]:
        arity = len(inspect.signature(self._queryset).parameters)
        queryset = self._queryset(*(RawSQL("%s", [_Value(number)]) for number in range(arity)))
        compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, given = compiler.as_sql()
        return sql, given, _reader(queryset.model, compiler)


def _reader(model: type[M], compiler: SQLCompiler) -> Callable[[list[Any]], M]:
    """Makes an instance of a row, with those that `select_related` named."""
    assert compiler.klass_info is not None
    columns = [column for column, *_ in compiler.select]
    converters = list(compiler.get_converters(columns).items())
    own = len(compiler.klass_info["select_fields"])
    names = [column.target.attname for column in columns[:own]]
    related = get_related_populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS)

    def read(row: list[Any]) -> M:
        connection = connections[DEFAULT_DB_ALIAS]
        for position, (converts, column) in converters:
            for convert in converts:
                row[position] = convert(row[position], column, connection)
        instance = model.from_db(DEFAULT_DB_ALIAS, names, row[:own])
        for populator in related:
            populator.populate(row, instance)
        return instance

    return read


def insert(row: models.Model) -> None:
    """Saves a new row as `save` does, and gives it its number. Sends no signals."""
    sql, fields = _insertion(type(row))
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, _stored(row, fields, add=True))
        (row.pk,) = cursor.fetchone()
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update(row: models.Model, *names: str, **was: Sequence[str]) -> bool:
    """Saves these fields of a row, as `save` does with `update_fields`. Sends no signals.

    Args:
        was: texts that a field may have in the database; where it has another, nothing is saved.

    Returns: whether it was saved.
    """
    conditions = tuple((name, len(texts)) for name, texts in was.items())
    sql, fields = _change(type(row), names, conditions)
    allowed = [text for texts in was.values() for text in texts]
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, [*_stored(row, fields, add=False), row.pk, *allowed])
        return bool(cursor.rowcount)


def _stored(row: models.Model, fields: Fields, *, add: bool) -> list[Any]:
    """The values of a row as the database takes them."""
    connection = connections[DEFAULT_DB_ALIAS]
    return [field.get_db_prep_save(field.pre_save(row, add), connection) for field in fields]


@cache
def _insertion(model: type[models.Model]) -> tuple[str, Fields]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    table, key = model._meta.db_table, model._meta.pk.column
    return f'INSERT INTO "{table}" ({columns}) VALUES ({marks}) RETURNING "{key}"', fields  # noqa: S608 - names of ours


@cache
def _change(
    model: type[models.Model], names: Sequence[str], conditions: Sequence[tuple[str, int]]
) -> tuple[str, Fields]:
    by_name = {field.name: field for field in model._meta.concrete_fields}
    fields = [by_name[name] for name in names]
    changes = ", ".join(f'"{field.column}" = %s' for field in fields)
    tests = [f'"{model._meta.pk.column}" = %s']
    for name, count in conditions:
        tests.append(f'"{by_name[name].column}" IN ({", ".join(["%s"] * count)})')
    table = model._meta.db_table
    return f'UPDATE "{table}" SET {changes} WHERE {" AND ".join(tests)}', fields  # noqa: S608 - names of ours
