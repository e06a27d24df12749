"""Checks of labels and splits, and the words that describe an edit."""

import pytest
from django.contrib.auth.models import User

from apps.datasets.models import Dataset
from apps.datasets.rows import edit_steps
from apps.datasets.rows.steps import Step
from tests.datasets.factories import create


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return create(alice, [("one", "a"), ("two", "b", "test"), ("three", "")])


def test_label_steps_leave_out_rows_that_have_the_label(dataset: Dataset) -> None:
    assert edit_steps.label_steps(dataset, [0, 1, 2, 9], "a") == [
        Step(1, {"label": "b"}, {"label": "a"}),
        Step(2, {"label": ""}, {"label": "a"}),
    ]


def test_split_steps_leave_out_rows_of_the_split(dataset: Dataset) -> None:
    assert edit_steps.split_steps(dataset, [0, 1], "test") == [
        Step(0, {"split": ""}, {"split": "test"})
    ]


def test_delete_steps_hold_the_whole_row(dataset: Dataset) -> None:
    [step] = edit_steps.delete_steps(dataset, [1])
    assert step.after is None
    assert step.before == {"text": "two", "label": "b", "split": "test", "origin": "", "meta": {}}


@pytest.mark.parametrize("split", ["", "train", "validation", "test"])
def test_check_split_accepts_splits(split: str) -> None:
    edit_steps.check_split(split)


@pytest.mark.parametrize("split", ["Train", "dev", "x" * 99])
def test_check_split_names_a_bad_one_in_brief(split: str) -> None:
    with pytest.raises(ValueError, match=f"^“{split[:40]}” is not a valid split"):
        edit_steps.check_split(split)


def test_clean_label_removes_stray_spaces(dataset: Dataset) -> None:
    assert edit_steps.clean_label(dataset, "  two   words ") == "two words"
    assert edit_steps.clean_label(dataset, "  ") == ""


def test_clean_label_counts_labels_it_replaces_as_free(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_steps, "MAX_LABELS", 2)
    assert edit_steps.clean_label(dataset, "c", replaced=["a"]) == "c"
    with pytest.raises(ValueError, match="The limit is 2 per dataset"):
        edit_steps.clean_label(dataset, "c")


@pytest.mark.parametrize(("label", "rows"), [("a", 1), ("", 1), ("none", 0)])
def test_label_rows_counts_the_rows_of_a_label(dataset: Dataset, label: str, rows: int) -> None:
    assert edit_steps.label_rows(dataset, label) == rows


def test_words_of_a_description() -> None:
    assert [edit_steps.row_count(n) for n in (0, 1, 1234)] == ["0 rows", "1 row", "1,234 rows"]
    assert (edit_steps.quoted("a"), edit_steps.quoted("")) == ("“a”", "unlabelled")
    assert edit_steps.split_phrase("test") == "moved to test"
    assert edit_steps.split_phrase("") == "removed from their split"
