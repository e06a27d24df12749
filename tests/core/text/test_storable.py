"""Characters that a database cannot store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.text.storable import is_storable, to_storable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("value", ["a\0", "\ud83d", ["a", {"b": "\0"}], {"\udc80": 1}, ("\0",)])
def test_is_storable_finds_a_bad_character_anywhere(value: object) -> None:
    assert not is_storable(value)


@pytest.mark.parametrize("value", ["", "grün 😀", None, 1.5, [], {"a": ["b"]}])
def test_is_storable_accepts_everything_else(value: object) -> None:
    assert is_storable(value)


@given(JSON)
def test_is_storable_takes_any_json_value(value: object) -> None:
    assert is_storable(value) in {True, False}


@given(st.text(st.characters()))
def test_to_storable_changes_bad_characters_only(text: str) -> None:
    stored = to_storable(text)
    assert is_storable(stored)
    assert len(stored) == len(text)
    assert (stored == text) == is_storable(text)
