"""Words, pairs and runs of words that texts share, held against counting them plainly."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.similarity.word_runs import RUN, WordRuns
from apps.similarity.words import split_words

TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=9).map(" ".join), min_size=1, max_size=8)


@given(TEXTS, st.data())
def test_parts_are_counted_as_if_they_were_alone(texts: list[str], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, unique=True))
    chosen = np.isin(np.arange(len(texts)), places)
    split = [split_words(texts[at]) for at in places]
    pairs = [pair for words in split for pair in pairwise(words)]
    runs = [{tuple(w[at : at + RUN]) for at in range(len(w) - RUN + 1)} for w in split]
    counts = Counter(run for found in runs for run in found)
    words = WordRuns.count(texts)
    assert words.words[chosen].sum() == sum(map(len, split))
    assert words.distinct_pairs(chosen) == (len(set(pairs)) / len(pairs) if pairs else 0)
    assert words.sharing_a_run(chosen) == sum(any(counts[run] > 1 for run in f) for f in runs)


@pytest.mark.parametrize(
    ("texts", "spaced"),
    [
        (["Where is my refund?"], True),
        (["我的信用卡今天很好用"], False),
        (["สวัสดี ทำอย่างไร"], False),
        (["mostly words, 退款"], True),
        ([], True),
    ],
)
def test_has_spaced_words(texts: list[str], spaced: bool) -> None:
    assert WordRuns.count(texts).has_spaced_words(np.ones(len(texts), dtype=bool)) is spaced
