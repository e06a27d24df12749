"""Figures of diversity, held against what they must be by their definitions."""

import numpy as np
import pytest

from apps.generation.review.diversity import TextSample, vendi_score

SAME = ["The kettle boils water fast."] * 20
VARIED = [f"{word} {number} things" for number, word in enumerate("abcdefghijklmnopqrst")]


def test_the_same_text_again_and_again() -> None:
    found = TextSample(SAME).measure()
    assert found is not None
    assert found.distinct_2 == pytest.approx(4 / 80)
    assert found.self_repetition == 1.0
    assert found.mean_words == 5
    assert found.compression > 8


def test_different_texts() -> None:
    found = TextSample(VARIED).measure()
    assert found is not None
    assert found.distinct_2 == 1.0
    assert found.self_repetition == 0.0
    assert found.compression < 3


def test_too_few_to_say() -> None:
    assert TextSample([]).measure() is None
    assert TextSample(["one"]).measure() is None
    assert TextSample(VARIED[:19]).course() == []


def test_the_vendi_score_counts_what_is_different() -> None:
    basis = np.eye(6, dtype=np.float32)
    assert vendi_score(basis) == pytest.approx(6)
    assert vendi_score(np.repeat(basis[:1], 9, axis=0)) == pytest.approx(1)
    assert vendi_score(np.repeat(basis[:2], 5, axis=0)) == pytest.approx(2)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(50, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(vectors @ vectors.T / 50)
    values = values[values > 1e-6]
    assert vendi_score(vectors) == pytest.approx(np.exp(-(values * np.log(values)).sum()), rel=1e-3)


def test_the_course_shows_where_it_begins_to_repeat() -> None:
    texts = [f"text {number} is one of its kind {number}" for number in range(120)] + SAME * 6
    found = TextSample(texts).course()
    assert len(found) == 24
    assert min(found[:12]) > 3 * max(found[12:])
    assert len(TextSample(texts[:23]).course()) == 4  # few rows are fewer points


def test_words_are_not_counted_where_none_are_apart() -> None:
    texts = [f"我的信用卡{number}今天早上被重复扣款了" for number in range(40)]
    found = TextSample(texts).measure()
    assert found is not None
    assert (found.distinct_2, found.self_repetition, found.mean_words) == (None, None, None)
    assert found.compression > 2
    assert TextSample(texts).course() == []
    mixed = TextSample(
        ["The shop 北京 was open all day.", "A lamp from 東京 that is bright."]
    ).measure()
    assert mixed is not None
    assert mixed.mean_words == 7
