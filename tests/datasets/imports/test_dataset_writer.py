"""The writer of new datasets: checks, counts, limits, batches."""

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from apps.datasets.errors import NothingUsable, TooManyLabels
from apps.datasets.imports import dataset_writer
from apps.datasets.imports.dataset_writer import DatasetWriter, Numbered, batches
from apps.datasets.models import Dataset
from apps.files import ColumnMapping, ExampleRow, RejectedRow


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return Dataset.objects.create(owner=alice, name="x", origin="tests")


def numbered(*rows: ExampleRow | RejectedRow) -> list[Numbered]:
    return list(enumerate(rows, start=1))


@given(st.lists(st.text(max_size=30), max_size=40), st.integers(1, 7), st.integers(1, 60))
def test_batches_keep_order_and_bounds(texts: list[str], rows: int, characters: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset_writer, "BATCH_ROWS", rows)
        patch.setattr(dataset_writer, "BATCH_CHARACTERS", characters)
        given_rows = numbered(*(ExampleRow(text, "a") for text in texts))
        made = list(batches(given_rows))
    assert [row for batch in made for row in batch] == given_rows
    for batch in made:
        assert 0 < len(batch) <= rows
        before_last = batch[:-1]
        assert sum(len(r.text) for _, r in before_last if isinstance(r, ExampleRow)) <= characters


def test_write_gives_rows_their_places_over_batches(dataset: Dataset) -> None:
    writer = DatasetWriter(dataset)
    writer.write(numbered(ExampleRow("one", "a"), ExampleRow("", "a")))
    writer.write(numbered(ExampleRow("two", "b", "test")))
    writer.finish(["A note."])
    dataset.refresh_from_db()
    assert list(dataset.examples.values_list("index", "text")) == [(0, "one"), (1, "two")]
    assert (dataset.rows, dataset.next_index, dataset.rejected_count) == (2, 2, 1)
    assert (dataset.label_counts, dataset.split_counts) == ({"a": 1, "b": 1}, {"test": 1})
    assert dataset.notes == ["A note."]


def test_write_gives_rows_without_a_split_that_of_their_file(dataset: Dataset) -> None:
    writer = DatasetWriter(dataset)
    rows = numbered(ExampleRow("one", "a", origin="row 2"), ExampleRow("two", "a", "test"))
    writer.write(rows, file="train.csv", split="train")
    splits = dataset.examples.order_by("index").values_list("split", "origin")
    assert list(splits) == [("train", "train.csv, row 2"), ("test", "train.csv, ")]


def test_write_bounds_the_origin(dataset: Dataset) -> None:
    writer = DatasetWriter(dataset)
    writer.write(numbered(ExampleRow("one", "a", origin="row 1234567")), file="f" * 200)
    origin = dataset.examples.get().origin
    assert len(origin) == 60
    assert origin.endswith(", row 1234567")


def test_unlabelled_rows_are_rejected_unless_allowed(dataset: Dataset) -> None:
    DatasetWriter(dataset).write(numbered(ExampleRow("one", "")))
    assert dataset.rejections.get().reason == "The label is empty."
    writer = DatasetWriter(dataset, unlabelled=True)
    writer.write(numbered(ExampleRow("one", "")))
    writer.finish()
    assert (dataset.rows, dataset.unlabelled, dataset.label_counts) == (1, 1, {})


def test_too_many_labels_name_the_column_and_some_labels(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_writer, "MAX_LABELS", 2)
    writer = DatasetWriter(dataset, mapping=ColumnMapping("text", "id"))
    rows = numbered(*(ExampleRow(f"text {n}", f"label {n}") for n in range(4)))
    with pytest.raises(
        TooManyLabels, match=r"The column “id” has more than 1,000 labels .“label 0”"
    ):
        writer.write(rows)


def test_only_the_first_rejections_are_stored(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_writer, "MAX_REJECTIONS", 3)
    writer = DatasetWriter(dataset)
    writer.write(numbered(ExampleRow("good", "a"), *[RejectedRow(n, "", "bad") for n in range(5)]))
    writer.finish()
    assert (dataset.rejections.count(), dataset.rejected_count) == (3, 5)
    assert "Showing the first 3 of 5 rejected rows." in dataset.notes


def test_finish_without_a_row_lists_the_first_reasons(dataset: Dataset) -> None:
    writer = DatasetWriter(dataset)
    writer.write(numbered(ExampleRow("", "a"), ExampleRow("text", "")))
    with pytest.raises(NothingUsable, match="All 2 rows were rejected") as caught:
        writer.finish()
    assert [row.column for row in caught.value.rejected] == ["text", "label"]


@pytest.mark.parametrize(("labels", "words"), [([" a"], "1 label"), ([" a", "b  "], "2 labels")])
def test_cleaned_labels_are_noted(dataset: Dataset, labels: list[str], words: str) -> None:
    writer = DatasetWriter(dataset)
    writer.write(numbered(*(ExampleRow(f"text{label}", label) for label in labels)))
    writer.finish()
    assert dataset.notes == [f"Extra spaces removed from {words}."]
