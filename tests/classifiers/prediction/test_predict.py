"""Texts before they are sent to a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.prediction.file_rows import COLUMNS, own_columns
from apps.classifiers.prediction.text_checks import MAX_TEXT, check_texts

columns = st.lists(
    st.one_of(st.sampled_from([*COLUMNS, "label (file)"]), st.text("ab ", max_size=4)),
    unique=True,
    max_size=12,
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Text 1 is empty."),
        (" \n\t", "Text 1 is empty."),
        ("x" * (MAX_TEXT + 1), "Text 1 is too long. The limit is 100,000 characters."),
        ("half \ud800", "Text 1 contains half of a surrogate pair."),
    ],
)
def test_check_texts_names_what_is_wrong(text: str, says: str) -> None:
    assert check_texts([text]) == [says]


def test_check_texts_numbers_the_texts_from_one() -> None:
    assert check_texts(["fine", "", "x" * MAX_TEXT, " "]) == [
        "Text 2 is empty.",
        "Text 4 is empty.",
    ]


@given(st.lists(st.text(max_size=20), max_size=8))
def test_check_texts_has_one_problem_for_each_bad_text(texts: list[str]) -> None:
    bad = [text for text in texts if not text.strip()]
    assert len(check_texts(texts)) == len(bad)


@given(columns, st.data())
def test_own_columns_never_take_a_name_twice(names: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(names)) if names else ""
    found = own_columns(names, text)
    assert list(found) == [name for name in names if name != text]
    assert len(set(found.values())) == len(found)
    assert not set(found.values()) & set(COLUMNS)


def test_own_columns_keep_names_that_are_free() -> None:
    assert own_columns(["id", "text", "label"], "text") == {"id": "id", "label": "label (file)"}
