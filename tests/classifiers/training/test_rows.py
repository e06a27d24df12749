"""Kinds of rows: trained on, tested on, out of scope, unlabelled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.training.rows import RowVectors
from tests.classifiers.training.label_quality.test_label_rules import PLAIN, rows

labels = st.sampled_from(["card", "rate", "", "oos", "Out of Scope"])
given_rows = st.lists(st.tuples(st.text("ab", max_size=2), labels, st.booleans()), max_size=30)


@given(given_rows)
def test_a_row_is_of_one_kind(given_rows: list[tuple[str, str, bool]]) -> None:
    found = rows(*given_rows)
    found.test &= found.labelled
    kinds = np.stack([found.train, found.test, found.out_of_scope])
    assert kinds.sum(axis=0).max(initial=0) <= 1
    assert not (found.unlabelled & found.labelled).any()


@given(given_rows)
def test_groups_are_those_of_the_text(given_rows: list[tuple[str, str, bool]]) -> None:
    found = rows(*given_rows)
    by_text: dict[str, set[int]] = {}
    for (text, _, _), group in zip(given_rows, found.groups.tolist(), strict=True):
        by_text.setdefault(text, set()).add(group)
    assert all(len(groups) == 1 for groups in by_text.values())


@given(given_rows, st.data())
def test_only_keeps_the_chosen_rows_in_order(
    given_rows: list[tuple[str, str, bool]], data: st.DataObject
) -> None:
    found = rows(*given_rows)
    size = len(given_rows)
    mask = np.asarray(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    some = found.only(mask)
    assert some.texts == [text for text, use in zip(found.texts, mask, strict=True) if use]
    assert some.indices == np.flatnonzero(mask).tolist()
    assert some.test.tolist() == found.test[mask].tolist()
    assert len(some.groups) == mask.sum()


def test_out_of_scope_rows_may_be_a_label_like_any_other() -> None:
    given = [*PLAIN, ("sold out", "OOS", False)]
    assert rows(*given).out_of_scope.tolist() == [False] * len(PLAIN) + [True]
    assert not rows(*given, train_oos=True).out_of_scope.any()


def test_unlabelled_rows_are_never_test_rows_nor_of_the_test_set() -> None:
    found = rows(("a", "", False), ("b", "", True), ("c", "card", False), ("d", "", False))
    found.sources = [0, 0, 0, 1]
    assert found.unlabelled.tolist() == [True, False, False, False]


@pytest.mark.parametrize("change", ["text", "label", "side", "order"])
def test_hash_tells_every_change_that_decides(change: str) -> None:
    first = ("one", "card", False)
    other = {
        "text": [("two", "card", False)],
        "label": [("one", "rate", False)],
        "side": [("one", "card", True)],
        "order": [PLAIN[0], first],
    }[change]
    before = rows(first, *PLAIN[:1]) if change == "order" else rows(first)
    assert rows(*other).hash != before.hash
    assert rows(first).hash == rows(first).hash


def test_row_vectors_divide_the_rows() -> None:
    found = rows(*PLAIN, ("zebra", "oos", False), ("unknown", "", False))
    vectors = np.arange(len(found.texts), dtype=np.float32)[:, None]
    sides = RowVectors.of_rows(found, vectors)
    assert sides.train[:, 0].tolist() == list(range(8))
    assert sides.test[:, 0].tolist() == [8, 9]
    assert sides.out_of_scope[:, 0].tolist() == [10]
    assert sides.unlabelled[:, 0].tolist() == [11]
    assert [len(side) for side in sides.sides] == [8, 2, 1, 1]
