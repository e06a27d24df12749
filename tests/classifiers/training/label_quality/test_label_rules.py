"""Labels before anything is embedded: rare ones, unseen ones, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.errors import CannotTrain
from apps.classifiers.training.label_quality.label_rules import (
    MAX_LABELS,
    LabelOptions,
    check_dataset,
    encode_labels,
    resolve_labels,
)
from apps.classifiers.training.rows import TrainingRows
from apps.datasets.models import Dataset


def rows(*given: tuple[str, str, bool], train_oos: bool = False) -> TrainingRows:
    """Rows of (text, label, is test)."""
    count = len(given)
    return TrainingRows(
        texts=[text for text, _, _ in given],
        labels=[label for _, label, _ in given],
        origins=[f"example {place + 1}" for place in range(count)],
        indices=list(range(count)),
        splits=["test" if test else "train" for _, _, test in given],
        sources=[0] * count,
        test=np.asarray([test for _, _, test in given], dtype=np.bool_),
        train_oos=train_oos,
    )


def labelled(label: str, count: int, *, test: bool = False) -> list[tuple[str, str, bool]]:
    return [(f"{label} {number}{test}", label, test) for number in range(count)]


PLAIN = [*labelled("card", 4), *labelled("rate", 4), *labelled("card", 2, test=True)]


def test_resolve_labels_keeps_rows_that_are_fine() -> None:
    found, keep = resolve_labels(rows(*PLAIN), LabelOptions())
    assert keep.all()
    assert (found.notes, found.unseen) == ([], 0)


def test_resolve_labels_leaves_rare_ones_out_with_a_note() -> None:
    found, keep = resolve_labels(rows(*PLAIN, ("once", "rare", False)), LabelOptions())
    assert keep.tolist() == [True] * len(PLAIN) + [False]
    assert "rare" not in found.labels
    assert "1 label with fewer than 2 different training texts (“rare”: 1)" in found.notes[0]


def test_resolve_labels_counts_different_texts_and_not_rows() -> None:
    copies = [("the same", "copied", False)] * 5
    found, _ = resolve_labels(rows(*PLAIN, *copies), LabelOptions())
    assert "copied" not in found.labels


def test_resolve_labels_pools_rare_ones() -> None:
    given = rows(*PLAIN, ("one", "a", False), ("two", "b", False))
    found, keep = resolve_labels(given, LabelOptions("pool"))
    assert keep.all()
    assert found.labels.count("other") == 2
    assert "2 labels" in found.notes[0]
    assert "pooled as “other”" in found.notes[0]


def test_resolve_labels_pools_nothing_that_stays_rare() -> None:
    found, _ = resolve_labels(rows(*PLAIN, ("one", "a", False)), LabelOptions("pool"))
    assert "other" not in found.labels


def test_resolve_labels_refuses_rare_ones_if_asked() -> None:
    given = rows(*PLAIN, ("one", "a", False), ("two", "b", False))
    with pytest.raises(CannotTrain, match="There are 2 labels with fewer than 2"):
        resolve_labels(given, LabelOptions("fail"))


def test_resolve_labels_leaves_out_test_rows_of_untrained_labels() -> None:
    found, keep = resolve_labels(rows(*PLAIN, ("new", "unseen", True)), LabelOptions())
    assert not keep[-1]
    assert found.unseen == 1
    assert "1 test row with labels that are never trained (“unseen”: 1)" in found.notes[0]


def test_resolve_labels_names_only_the_first_rare_ones() -> None:
    rare = [(f"text {number}", f"rare {number}", False) for number in range(8)]
    found, _ = resolve_labels(rows(*PLAIN, *rare), LabelOptions())
    assert "and 3 more" in found.notes[0]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.booleans()), max_size=40),
    st.integers(2, 4),
)
def test_resolve_labels_never_leaves_a_rare_label(
    given_rows: list[tuple[int, int, bool]], rare_below: int
) -> None:
    made = [(f"text {text}", f"label {label}", test) for text, label, test in given_rows]
    try:
        found, keep = resolve_labels(rows(*made), LabelOptions(rare_below=rare_below))
    except CannotTrain:
        return
    assert len(found.texts) == keep.sum()
    trained = {label for label, test in zip(found.labels, found.test, strict=True) if not test}
    tested = {label for label, test in zip(found.labels, found.test, strict=True) if test}
    assert tested <= trained
    assert len(trained) >= 2


def test_encode_labels_numbers_them_in_order() -> None:
    given = rows(*labelled("rate", 2), *labelled("card", 2), ("x", "", False), ("y", "card", True))
    labels, codes = encode_labels(given)
    assert labels == ["card", "rate"]
    assert codes.tolist() == [1, 1, 0, 0, -1, 0]


def test_encode_labels_leaves_out_of_scope_rows_without_a_number() -> None:
    labels, codes = encode_labels(rows(*PLAIN, ("zebra", "OOS", False)))
    assert "OOS" not in labels
    assert codes[-1] == -1
    labels, codes = encode_labels(rows(*PLAIN, ("zebra", "OOS", False), train_oos=True))
    assert codes[-1] == labels.index("OOS")


def test_encode_labels_needs_test_rows() -> None:
    with pytest.raises(CannotTrain, match="no test rows"):
        encode_labels(rows(*labelled("card", 2), *labelled("rate", 2)))


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({}, "Label some rows first"),
        ({"": 9}, "Label some rows first"),
        ({"card": 9}, "only one label to train, “card”"),
        ({"card": 9, "oos": 9}, "only one label to train, “card”"),
        ({f"label {n}": 1 for n in range(MAX_LABELS + 1)}, "1,001 labels"),
    ],
)
def test_check_dataset_refuses_labels_by_their_counts(counts: dict[str, int], says: str) -> None:
    with pytest.raises(CannotTrain, match=says):
        check_dataset(Dataset(label_counts=counts))


def test_check_dataset_counts_oos_as_a_label_if_it_is_trained() -> None:
    check_dataset(Dataset(label_counts={"card": 9, "oos": 9}), LabelOptions(train_oos=True))


def test_label_options_survive_json() -> None:
    chosen = LabelOptions("pool", 5, True)
    assert LabelOptions.read(chosen.as_dict()) == chosen
    assert LabelOptions.read({}) == LabelOptions()
    assert LabelOptions.read({"rare_below": 0}).rare_below == 2
