"""The types of Parquet columns: nothing of any value is lost."""

import io
import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.files.writers import ParquetWriter
from apps.generation.exports.parquet_types import ColumnTypes, to_array
from apps.generation.recipe.parse import parse
from apps.generation.recipe.prompts.budget import to_text

FIELDS = {
    "title": {"type": "string"},
    "count": {"type": "integer"},
    "share": {"type": "number"},
    "good": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "place": {"type": "object", "properties": {"city": {"type": "string"}}},
    "level": {"enum": [1, 2]},
    "mixed": {"enum": [1, "two"]},
}
RECIPE = parse(
    {
        "columns": [
            {"name": "day", "kind": "date", "from": "2026-01-01", "to": "2026-01-31"},
            {"name": "age", "kind": "number", "min": 1, "max": 9},
            {"name": "half", "kind": "number", "min": 0, "max": 1, "decimals": 1},
            {"name": "twice", "kind": "expression", "expression": "2 * age"},
        ],
        "prompt": "Write.",
        "schema": {"type": "object", "properties": FIELDS},
    }
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.just("2026-01-31"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["city", "x"]), inner, max_size=2)
    ),
    max_leaves=5,
)
ROWS = st.fixed_dictionaries({}, optional=dict.fromkeys([*RECIPE.field_names], VALUES))


def written(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    types = ColumnTypes(RECIPE)
    for row in rows:
        types.narrow(row)
    writer = ParquetWriter(schema=types.schema(), column=to_array)
    data = writer.header() + writer.encode(rows) + writer.footer()
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    return found


def same(read: Any, value: Any) -> bool:
    """True if the value can be had back from the cell."""
    if value is None:
        return read is None
    if isinstance(read, date):
        return str(read.isoformat()) == value
    if isinstance(read, str) and not isinstance(value, str):
        return bool(json.loads(read) == value)
    if isinstance(value, str):
        return bool(read == value.encode("utf-8", "replace").decode())
    if isinstance(value, list):
        return all(same(one, other) for one, other in zip(read, value, strict=True))
    if isinstance(value, dict):
        return all(same(part, value.get(name)) for name, part in dict(read).items())
    equal: bool = read == value
    return equal


@given(st.lists(ROWS, max_size=4))
@settings(max_examples=60)
def test_every_value_can_be_read_back(rows: list[dict[str, Any]]) -> None:
    found = written(rows)
    assert len(found) == len(rows)
    for row, read in zip(rows, found, strict=True):
        assert list(read) == RECIPE.field_names
        for name in read:
            assert same(read[name], row.get(name)), (name, read[name], row.get(name))


def test_a_column_has_the_type_of_its_field() -> None:
    types = ColumnTypes(RECIPE, "row").schema()
    assert {field.name: str(field.type) for field in types} == {
        "row": "int64",
        "day": "date32[day]",
        "age": "int64",
        "half": "double",
        "twice": "bool",
        "title": "string",
        "count": "int64",
        "share": "double",
        "good": "bool",
        "tags": "list<item: string>",
        "place": "struct<city: string>",
        "level": "int64",
        "mixed": "string",
    }


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], pa.bool_()),
        ([1, 2], pa.int64()),
        ([True, 1], pa.string()),
        ([1, 2.5], pa.float64()),
        ([1, "two"], pa.string()),
        ([None, None], pa.bool_()),
        ([2**70], pa.string()),
        ([2**60 + 1, 0.5], pa.string()),  # a float would lose digits of the integer
    ],
)
def test_an_expression_has_the_first_type_that_fits_all(values: list[Any], kind: Any) -> None:
    types = ColumnTypes(RECIPE)
    assert not types.are_final
    for value in values:
        types.narrow({"twice": value})
    assert types.schema().field("twice").type == kind


def test_types_of_texts_alone_are_final() -> None:
    assert ColumnTypes(parse({"prompt": "Write.", "attributes": {"a": ["x"]}})).are_final


def test_a_value_that_no_longer_fits_is_an_error() -> None:
    with pytest.raises(ValueError, match="“two” is not of the type int64"):
        to_array([1, "two"], pa.int64())
    assert to_array(["two", {"a": 1}, None], pa.string()).to_pylist() == ["two", '{"a": 1}', None]


def test_a_time_needs_its_zone() -> None:
    kind = pa.timestamp("us", "UTC")
    moment = "2026-01-01T10:30+00:00"
    assert to_array([moment], kind).to_pylist() == [datetime(2026, 1, 1, 10, 30, tzinfo=UTC)]
    with pytest.raises(ValueError, match="is not of the type"):
        to_array([moment.removesuffix("+00:00")], kind)


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert to_array(["\ud800"], pa.string()).to_pylist() == ["?"]
    assert to_text("\ud800") == "\ud800"
