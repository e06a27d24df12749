"""Near duplicates and contamination: what is found, how surely, and how fast."""

import random

import pytest

from apps.generation.duplicates import BUCKET, NearDuplicates, TestSet, similarity

WORDS = ["kettle", "lamp", "boils", "water", "fast", "slow", "love", "hate", "good", "bad", "days"]


def text(seed: int, words: int = 40) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choices(WORDS, k=words)) + f" {seed}"


def test_similarity_is_the_share_of_common_runs() -> None:
    assert similarity("A  kettle.", "a kettle.") == 1.0
    assert similarity("a kettle", "quite other words") == 0.0
    assert similarity("abcdef", "abcdefg") == pytest.approx(2 / 3)
    assert similarity("", "") == 1.0


def test_finds_a_text_with_a_word_changed() -> None:
    known = NearDuplicates()
    for seed in range(500):
        known.add(seed, text(seed))
    found = 0
    for seed in range(0, 500, 5):
        words = text(seed).split()
        words[7] = "extraordinary"
        changed = " ".join(words)
        match = known.nearest(changed)
        if match is not None and match.key == seed:
            found += 1
            assert match.share == pytest.approx(similarity(changed, text(seed)), abs=0.16)
    assert found >= 98


def test_leaves_different_texts_alone() -> None:
    known = NearDuplicates()
    assert sum(known.check_and_add(seed, text(seed), 0.8) is not None for seed in range(2000)) == 0


def test_of_two_twins_the_second_is_found() -> None:
    known = NearDuplicates()
    assert known.check_and_add(3, "A kettle that boils water.", 0.8) is None
    match = known.check_and_add(8, "A kettle that boils  WATER.", 0.8)
    assert match is not None
    assert (match.key, match.share) == (3, 1.0)
    assert known.check_and_add(3, "A kettle that boils water.", 0.8) is None  # itself, tried again
    assert known.check_and_add(9, "", 0.8) is None


def test_a_look_up_compares_a_bounded_number_however_many_there_are() -> None:
    known = NearDuplicates()
    for seed in range(60):
        known.add(seed, "always the same words")
    for band in known._bands:
        for places in band.values():
            assert isinstance(places, list)
            assert len(places) == BUCKET


TESTS = TestSet(
    [
        "My card was charged twice for the same coffee this morning, please help.",
        "Where is my refund?",
    ]
)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            "Hello! my card was charged twice for the same coffee, why?",
            "“my card was charged twice",
        ),
        ("where is my  REFUND?", "row 2 of the test set"),
        ("My card was charged twice.", ""),
        ("Where can I find my refund slip for the shoes?", ""),
        ("", ""),
    ],
)
def test_contamination(made: str, sentence: str) -> None:
    problem = TESTS.problem(made)
    assert sentence in problem
    assert bool(problem) == bool(sentence)
