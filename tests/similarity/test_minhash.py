"""Near duplicates and contamination: what is found, how surely, and how fast."""

import random

import numpy as np
import pytest

from apps.similarity.minhash import (
    BUCKET,
    HASHES,
    LATEST,
    Match,
    NearDuplicates,
    TestSet,
    signature_of,
    similarity,
)

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


def judged(known: NearDuplicates, key: int, words: str) -> Match | None:
    signature = signature_of(words)
    assert signature is not None
    return known.check_and_add(key, signature, 0.8)


def test_leaves_different_texts_alone() -> None:
    known = NearDuplicates()
    assert sum(judged(known, seed, text(seed)) is not None for seed in range(2000)) == 0


def test_of_two_twins_the_second_is_found() -> None:
    known = NearDuplicates()
    assert judged(known, 3, "A kettle that boils water.") is None
    assert judged(known, 8, "A kettle that boils  WATER.") == Match(3, 1.0)
    assert judged(known, 3, "A kettle that boils water.") is None  # itself, tried again
    assert signature_of("") is None


def test_what_is_found_does_not_depend_on_how_they_came() -> None:
    """Review, sorted in on the way, or all at once from what was kept."""
    texts = [text(seed) for seed in range(LATEST + 500)]
    signatures = np.stack([found for words in texts if (found := signature_of(words)) is not None])
    one_by_one, at_once = NearDuplicates(), NearDuplicates()
    for key, words in enumerate(texts):
        one_by_one.add(key + 5, words)
    at_once.add_many(range(5, 105), signatures[:100])
    at_once.add_many(range(105, len(texts) + 5), signatures[100:])
    for seed in range(0, len(texts), 50):
        words = texts[seed].replace("kettle", "kettles", 1)
        assert one_by_one.nearest(words) == at_once.nearest(words)
        match = at_once.nearest(texts[seed])
        assert match == Match(seed + 5, 1.0)
    assert len(one_by_one) == len(at_once) == len(texts)


def test_a_look_up_compares_a_bounded_number_however_many_there_are() -> None:
    known = NearDuplicates()
    for seed in range(60):
        known.add(seed, "always the same words")
    signature = signature_of("always the same words")
    assert signature is not None
    assert len(known._alike(signature)) == BUCKET
    known.add_many(range(60, 120), np.repeat(signature[None], 60, axis=0))
    assert len(known._alike(signature)) == BUCKET


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.7, 0.8, 0.9])
def test_a_pair_with_as_much_in_common_as_the_threshold_is_found(threshold: float) -> None:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        one, other = rng.integers(0, 2**16, (2, HASHES), dtype=np.uint16)
        same = rng.permutation(HASHES) < threshold * HASHES
        other[same] = one[same]
        known = NearDuplicates(threshold)
        known.add_many([0], one[None])
        found += known.nearest_to(other) is not None
    assert found >= 0.95 * 200


TESTS = TestSet(
    [
        "My card was charged twice for the same coffee this morning, please help.",
        "Where is my refund?",
        "Thank you!",
        "我的信用卡今天早上被同一家咖啡店重复扣款了两次请帮帮我",
        "ฉันถูกเรียกเก็บเงินสองครั้งสำหรับกาแฟแก้วเดียวกันเมื่อเช้านี้",
        "退款在哪里呢",
        "谢谢你",
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
        (
            "Hello, where is my refund? I wait since May.",
            "“where is my refund” in common with row 2",
        ),
        ("Hello, thank you for the refund.", ""),
        ("My card was charged twice.", ""),
        ("你好!我的信用卡今天早上被同一家咖啡店重复扣款了,怎么办?", "row 4 of the test set"),
        ("สวัสดี ฉันถูกเรียกเก็บเงินสองครั้งสำหรับกาแฟ ทำอย่างไร", "row 5 of the test set"),
        ("请问,退款在哪里呢?我等了很久", "“退款在哪里呢” in common with row 6"),
        ("谢谢你,我的信用卡今天很好用", ""),
        ("Where can I find my refund slip for the shoes?", ""),
        ("", ""),
    ],
)
def test_contamination(made: str, sentence: str) -> None:
    problem = TESTS.problem(made)
    assert sentence in problem
    assert bool(problem) == bool(sentence)
