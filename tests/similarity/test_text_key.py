"""One text key: a row that is a duplicate in Generate is one in Datasets and in Classify."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.rows.answer_check import fingerprint
from apps.similarity.minhash import jaccard_similarity
from apps.similarity.text_key import normalise_text, text_key, texts_fingerprint

TEXTS = st.text(max_size=40)
VARIANTS = st.sampled_from(
    [
        str.upper,
        str.swapcase,
        lambda text: f"  {text}\n",
        lambda text: text.replace(" ", "  \t "),
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: text + "!",
        lambda text: text[1:],
    ]
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It works.", " it  WORKS.\n"),
        ("Café", "Cafe\u0301"),
        ("ﬁne", "fine"),
        ("Straße", "STRASSE"),
        ("full　width Ａ", "full width a"),
    ],
)
def test_texts_that_read_the_same_have_one_key(one: str, other: str) -> None:
    assert normalise_text(one) == normalise_text(other)
    assert text_key(one) == text_key(other)
    assert jaccard_similarity(one, other) == 1.0


@pytest.mark.parametrize(
    ("one", "other"), [("It works.", "It works!"), ("ab", "a b"), ("a-b", "ab"), ("e", "é")]
)
def test_other_letters_and_signs_make_another_text(one: str, other: str) -> None:
    assert text_key(one) != text_key(other)


@given(TEXTS)
def test_text_key_fits_a_signed_64_bit_column(text: str) -> None:
    assert -(2**63) <= text_key(text) < 2**63


@given(TEXTS)
def test_normalise_text_collapses_white_space(text: str) -> None:
    once = normalise_text(text)
    assert once == " ".join(once.split())
    assert normalise_text(f" {text}\n\n") == once


@given(TEXTS | st.text("a é\u00a0\u2003\x1f\u0345İ", max_size=12))
def test_normalise_text_is_nfkc_without_case_and_white_space(text: str) -> None:
    words = unicodedata.normalize("NFKC", text).casefold().split()
    assert normalise_text(text) == " ".join(words)


@given(TEXTS, VARIANTS)
def test_a_duplicate_in_generate_is_one_in_datasets(text: str, vary: object) -> None:
    assert callable(vary)
    other = vary(text)
    in_generate = fingerprint([text]) == fingerprint([other])
    in_datasets = text_key(text) == text_key(other)
    assert in_generate == in_datasets == (normalise_text(text) == normalise_text(other))


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_fingerprint_tells_where_a_text_ends(texts: list[str]) -> None:
    assert len(texts_fingerprint(texts)) == 32
    assert texts_fingerprint(texts) != texts_fingerprint([*texts, ""])
