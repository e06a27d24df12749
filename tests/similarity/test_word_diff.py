"""Differing words of two texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.similarity.word_diff import MAX_WORDS, different_words

TEXTS = st.text(alphabet="ab \n.é", max_size=80)


def marked(text: str, other: str) -> list[str]:
    return [stretch.text.strip() for stretch in different_words(text, other) if stretch.differs]


@pytest.mark.parametrize(
    ("text", "other", "found"),
    [
        ("A blue kettle sings.", "A red kettle sings.", ["blue"]),
        ("A kettle sings.", "a KETTLE  sings.", []),
        ("A kettle that sings.", "A kettle sings.", ["that"]),
        ("The moon.", "A kettle", ["The moon."]),
        ("The moon.", "", ["The moon."]),
        ("", "A kettle", []),
        ("one two three four", "two one three five", ["one", "four"]),
    ],
)
def test_words_that_the_other_text_lacks_are_marked(
    text: str, other: str, found: list[str]
) -> None:
    assert marked(text, other) == found


@given(TEXTS, TEXTS)
def test_the_stretches_are_the_text(text: str, other: str) -> None:
    found = different_words(text, other)
    assert "".join(stretch.text for stretch in found) == text
    assert all(stretch.text for stretch in found)
    assert not any(stretch.differs for stretch in different_words(text, text))


def test_words_beyond_the_limit_are_not_marked() -> None:
    text = "same " * MAX_WORDS + "end"
    assert different_words(text, "same " * MAX_WORDS)[-1] == ("end", False)
