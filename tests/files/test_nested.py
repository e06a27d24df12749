"""Values nested in cells, by their path."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.files import nested
from apps.files.nested import FieldNames, leaf_paths, value_at

KEYS = st.text("abc", min_size=1, max_size=3)
PLAIN = st.integers() | st.text(max_size=5)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner), max_leaves=12
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_every_path_leads_to_a_plain_value(cells: dict[str, Any]) -> None:
    for path in leaf_paths(cells):
        there, value = value_at(cells, path)
        assert there
        assert not isinstance(value, dict | list)


def test_leaf_paths_offer_the_first_items_of_lists() -> None:
    cells = {"text": "a", "tags": [{"name": "x"}, 2, None, "beyond"], "data": {"a": {"b": 1}}}
    assert leaf_paths(cells) == ["tags.0.name", "tags.1", "data.a.b"]


def test_leaf_paths_leave_out_keys_with_dots_and_deep_values() -> None:
    deep: Any = 1
    for _ in range(nested.MAX_DEPTH + 1):
        deep = {"in": deep}
    assert leaf_paths({"a": {"b.c": 1, "d": 2}, "deep": deep}) == ["a.d"]


def test_leaf_paths_are_bounded() -> None:
    wide = {"wide": {str(n): n for n in range(1_000)}}
    assert len(leaf_paths(wide)) == nested.MAX_PATHS


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("text", (True, "a")),
        ("a.b", (True, "a column with a dot")),
        ("data.list.1", (True, 20)),
        ("data.list.2", (False, None)),
        ("data.list.x", (False, None)),
        ("data.none", (False, None)),
        ("text.more", (False, None)),
        ("nope", (False, None)),
        ("data.empty", (True, None)),
    ],
)
def test_value_at(path: str, expected: tuple[bool, Any]) -> None:
    data = {"list": [10, 20], "empty": None}
    cells = {"text": "a", "a.b": "a column with a dot", "a": {"b": 1}, "data": data}
    assert value_at(cells, path) == expected


def test_field_names_tell_object_columns_by_the_most_rows() -> None:
    fields = FieldNames()
    for cells in ({"a": {"b": 1}, "t": "x"}, {"a": [{"b": 2}], "t": "y"}, {"a": "z", "t": {}}):
        fields.add(cells)
    assert list(fields.names) == ["a", "t"]
    assert fields.object_columns == ("a",)
    assert fields.paths == ("a.b", "a.0.b")
