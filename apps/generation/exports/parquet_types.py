"""The types of the columns of a Parquet file: those of the recipe, as far as the values fit.

A value may not fit its column: a whole number beyond 64 bits, an edit. The column is then text, in
which no digit is lost.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.sampled import Date, Expression, Number
from apps.generation.recipe.columns.written import Written
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.recipe.recipe import Recipe

TEXT = pa.string()
_SCALARS = {
    "string": TEXT,
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
# An expression's type is not known beforehand: the first one that all of its values have.
_ANY = (pa.bool_(), pa.int64(), pa.float64(), TEXT)


class ColumnTypes:
    """The type of each column, narrowed down by the values in the rows."""

    def __init__(self, recipe: Recipe, number: str = "") -> None:
        self._left: dict[str, list[Any]] = {number: [pa.int64()]} if number else {}
        self._left |= {name: [TEXT] for name in recipe.field_names}
        for column in recipe.columns:
            for name, kinds in _kinds(column).items():
                if name in self._left:
                    self._left[name] = [*kinds, TEXT] if kinds[-1] != TEXT else list(kinds)

    @property
    def are_final(self) -> bool:
        """True if no row can change them."""
        return all(len(kinds) == 1 for kinds in self._left.values())

    def narrow(self, row: Mapping[str, Any]) -> None:
        """Gives up the types that a row's values do not fit."""
        for name, kinds in self._left.items():
            if len(kinds) > 1:
                kinds[:] = [kind for kind in kinds if _fits(row.get(name), kind)]

    def schema(self) -> Any:
        return pa.schema([(name, kinds[0]) for name, kinds in self._left.items()])


def to_array(values: Iterable[Any], kind: Any) -> Any:
    """The `pyarrow.Array` of a column.

    Raises:
        ValueError: a value does not fit. All of them did before, so its row was edited since.
    """
    return pa.array([_cell(_fitting(value, kind), kind) for value in values], kind)


def _fitting(value: Any, kind: Any) -> Any:
    if not _fits(value, kind):
        raise ValueError(
            f"“{to_text(value)[:40]}” is not of the type {kind} that its column has: the row was "
            "changed during the download. Start the download again."
        )
    return value


def _kinds(column: Column) -> dict[str, Sequence[Any]]:
    match column:
        case Number():
            return {column.name: (pa.float64() if column.decimals else pa.int64(),)}
        case Date():
            return {column.name: (pa.timestamp("us", "UTC") if column.with_time else pa.date32(),)}
        case Expression():
            return {column.name: _ANY}
        case Written() if column.answer_schema is not None:
            properties = column.answer_schema["properties"]
            return {name: (_of_schema(inner),) for name, inner in properties.items()}
    return {}


def _of_schema(schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if kind is None and ("enum" in schema or "const" in schema):
        kinds = {_name(value) for value in schema.get("enum", [schema.get("const")])}
        kind = kinds.pop() if len(kinds) == 1 else None
    if kind == "array":
        return pa.list_(_of_schema(schema["items"]))
    if kind == "object" and schema.get("properties"):
        inner = schema["properties"].items()
        return pa.struct([(name, _of_schema(part)) for name, part in inner])
    return _SCALARS.get(str(kind), TEXT)


def _name(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return ""


def _fits(value: Any, kind: Any, *, inside: bool = False) -> bool:
    """True if nothing of the value is lost in a column of this type."""
    if value is None:
        return True
    if pa.types.is_string(kind):
        return not inside or isinstance(value, str)
    if pa.types.is_list(kind):
        return isinstance(value, list) and all(
            _fits(item, kind.value_type, inside=True) for item in value
        )
    if pa.types.is_struct(kind):
        fields = {field.name: field.type for field in kind}
        return (
            isinstance(value, dict)
            and value.keys() <= fields.keys()
            and all(_fits(part, fields[name], inside=True) for name, part in value.items())
        )
    return _is(value, kind)


def _is(value: Any, kind: Any) -> bool:
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return isinstance(value, str) and _moment(value, kind) is not None
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float):
        return pa.types.is_floating(kind) or (value.is_integer() and abs(value) <= 2**53)
    return abs(value) <= 2**53 if pa.types.is_floating(kind) else -(2**63) <= value < 2**63


def _moment(text: str, kind: Any) -> date | None:
    read: Callable[[str], date] = (
        date.fromisoformat if pa.types.is_date(kind) else datetime.fromisoformat
    )
    try:
        found = read(text)
    except ValueError:
        return None
    if isinstance(found, datetime) and found.tzinfo is None:
        return None
    return found


def _cell(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return to_text(value).encode("utf-8", "replace").decode()
    if pa.types.is_list(kind):
        return [_cell(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _cell(value.get(field.name), field.type) for field in kind}
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _moment(value, kind)
    return int(value) if pa.types.is_integer(kind) else value
