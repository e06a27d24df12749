"""Near-duplicates: how surely they are found, and how fast."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.similarity.dedup import BUCKET, LATEST, Match, NearDuplicateIndex
from apps.similarity.minhash import HASHES, jaccard_similarity, minhash_signature

WORDS = ["kettle", "lamp", "boils", "water", "fast", "slow", "love", "hate", "good", "bad", "days"]


def text(seed: int, words: int = 40) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choices(WORDS, k=words)) + f" {seed}"


def test_finds_a_text_with_a_word_changed() -> None:
    known = NearDuplicateIndex()
    for seed in range(500):
        known.add(seed, text(seed))
    found = 0
    for seed in range(0, 500, 5):
        words = text(seed).split()
        words[7] = "extraordinary"
        changed = " ".join(words)
        match = known.find_nearest(changed)
        if match is not None and match.key == seed:
            found += 1
            assert match.similarity == pytest.approx(
                jaccard_similarity(changed, text(seed)), abs=0.16
            )
    assert found >= 98


def find_or_add(known: NearDuplicateIndex, key: int, words: str) -> Match | None:
    signature = minhash_signature(words)
    assert signature is not None
    return known.find_or_add(key, signature, 0.8)


def test_leaves_different_texts_alone() -> None:
    known = NearDuplicateIndex()
    assert sum(find_or_add(known, seed, text(seed)) is not None for seed in range(2000)) == 0


def test_the_second_of_two_duplicates_is_found() -> None:
    known = NearDuplicateIndex()
    assert find_or_add(known, 3, "A kettle that boils water.") is None
    assert find_or_add(known, 8, "A kettle that boils  WATER.") == Match(3, 1.0)
    assert find_or_add(known, 3, "A kettle that boils water.") is None  # itself, tried again


def test_find_nearest_does_not_depend_on_how_texts_were_added() -> None:
    """One by one, sorted on the way, or all at once from stored signatures."""
    texts = [text(seed) for seed in range(LATEST + 500)]
    signatures = np.stack(
        [found for words in texts if (found := minhash_signature(words)) is not None]
    )
    one_by_one, at_once = NearDuplicateIndex(), NearDuplicateIndex()
    for key, words in enumerate(texts):
        one_by_one.add(key + 5, words)
    at_once.add_signatures(range(5, 105), signatures[:100])
    at_once.add_signatures(range(105, len(texts) + 5), signatures[100:])
    for seed in range(0, len(texts), 50):
        words = texts[seed].replace("kettle", "kettles", 1)
        assert one_by_one.find_nearest(words) == at_once.find_nearest(words)
        match = at_once.find_nearest(texts[seed])
        assert match == Match(seed + 5, 1.0)
    assert len(one_by_one) == len(at_once) == len(texts)


def test_find_candidates_is_bounded_however_many_texts_there_are() -> None:
    known = NearDuplicateIndex()
    for seed in range(60):
        known.add(seed, "always the same words")
    signature = minhash_signature("always the same words")
    assert signature is not None
    assert len(known.find_candidates(signature)) == BUCKET
    known.add_signatures(range(60, 120), np.repeat(signature[None], 60, axis=0))
    assert len(known.find_candidates(signature)) == BUCKET


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.7, 0.8, 0.9])
def test_a_pair_with_as_much_in_common_as_the_threshold_is_found(threshold: float) -> None:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        one, other = rng.integers(0, 2**16, (2, HASHES), dtype=np.uint16)
        same = rng.permutation(HASHES) < threshold * HASHES
        other[same] = one[same]
        known = NearDuplicateIndex(threshold)
        known.add_signatures([0], one[None])
        found += known.find_nearest_signature(other) is not None
    assert found >= 0.95 * 200


@given(st.lists(st.text("abcd e", min_size=1).filter(str.strip), min_size=1, max_size=20))
def test_every_added_text_finds_itself_or_an_equal_one(texts: list[str]) -> None:
    index = NearDuplicateIndex()
    for key, words in enumerate(texts):
        index.add(key, words)
    assert len(index) == len(texts)
    for words in texts:
        match = index.find_nearest(words.upper())
        assert match is not None
        assert match.similarity == 1.0


def test_a_blank_text_is_not_added_and_finds_nothing() -> None:
    index = NearDuplicateIndex()
    index.add(1, " \n ")
    assert len(index) == 0
    assert index.find_nearest(" ") is None


def test_a_text_below_the_threshold_is_added() -> None:
    index = NearDuplicateIndex(0.8)
    assert find_or_add(index, 1, "a kettle that boils water") is None
    assert find_or_add(index, 2, "a lamp that lights the room") is None
    assert len(index) == 2
