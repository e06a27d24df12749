"""MinHash signatures: an estimate of the 5-grams that two texts have in common."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.similarity.minhash import (
    HASHES,
    SHINGLE,
    jaccard_similarity,
    minhash_signature,
    shingles,
)

TEXTS = st.text(max_size=60)


def test_jaccard_similarity_is_the_share_of_common_5_grams() -> None:
    assert jaccard_similarity("A  kettle.", "a kettle.") == 1.0
    assert jaccard_similarity("a kettle", "quite other words") == 0.0
    assert jaccard_similarity("abcdef", "abcdefg") == pytest.approx(2 / 3)
    assert jaccard_similarity("", "") == 1.0


@given(TEXTS, TEXTS)
def test_jaccard_similarity_is_symmetric_and_between_0_and_1(one: str, other: str) -> None:
    assert 0.0 <= jaccard_similarity(one, other) == jaccard_similarity(other, one) <= 1.0


@given(TEXTS)
def test_a_text_is_equal_to_itself_in_other_case_and_spacing(text: str) -> None:
    assert jaccard_similarity(text, f"  {text}\n") == 1.0
    one, other = minhash_signature(text), minhash_signature(f" {text} ")
    assert (one is None) == (other is None) == (not text.strip())
    if one is not None and other is not None:
        assert np.array_equal(one, other)
        assert (one.shape, one.dtype) == ((HASHES,), np.uint16)


@given(st.text("abc ", min_size=30, max_size=90), st.integers(0, 29))
def test_the_signature_estimates_the_similarity(text: str, place: int) -> None:
    other = text[:place] + "xyz" + text[place:]
    one, two = minhash_signature(text), minhash_signature(other)
    assert one is not None or not text.strip()
    if one is not None and two is not None:
        estimate = float((one == two).mean())
        assert estimate == pytest.approx(jaccard_similarity(text, other), abs=0.25)


def test_shingles_of_a_short_text_are_one() -> None:
    assert len(shingles("abc")) == 1
    assert len(shingles("a" * (SHINGLE + 3))) == 1
    assert len(shingles("abcdefg")) == 3
    assert len(shingles("")) == 0


def test_a_long_text_has_the_signature_of_its_parts_together() -> None:
    """Texts are hashed in pieces of 2,000 shingles; the smallest values are the same."""
    words = " ".join(f"word{n}" for n in range(3_000))
    signature = minhash_signature(words)
    assert signature is not None
    assert np.array_equal(signature, minhash_signature(words.upper()))
    assert minhash_signature("") is None
