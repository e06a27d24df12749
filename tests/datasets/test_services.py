from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from apps.datasets.models import Dataset, Example, Rejection
from apps.datasets.services import NothingUsable, create_dataset
from apps.files import ExampleRow, RejectedRow


def test_create_dataset_normalises_labels_and_keeps_rejections(alice: User) -> None:
    rows = [
        ExampleRow("one", " a  b "),
        ExampleRow("ONE ", "a b", "test"),
        ExampleRow("", "a"),
        RejectedRow(9, "label", "told so"),
    ]
    dataset = create_dataset(owner=alice, name="x", rows=iter(rows), origin="a job")
    assert (dataset.rows, dataset.duplicates, dataset.rejected_count) == (2, 1, 2)
    assert dataset.label_counts == {"a b": 2}
    assert dataset.split_counts == {"test": 1}
    assert [rejection.row for rejection in dataset.rejections.all()] == [3, 9]
    assert list(dataset.examples.values_list("index", "split")) == [(0, ""), (1, "test")]
    assert "1 label" in dataset.notes[0]


def test_create_dataset_writes_all_rows_or_nothing(alice: User) -> None:
    def broken() -> Iterator[ExampleRow]:
        for number in range(5000):
            yield ExampleRow(f"text {number}", "a")
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        create_dataset(owner=alice, name="x", rows=broken(), origin="x")
    with pytest.raises(NothingUsable, match="row 1, text"):
        create_dataset(owner=alice, name="x", rows=[ExampleRow("", "a")], origin="x")
    for model in (Dataset, Example, Rejection):
        assert not model.objects.exists()


def test_indices_run_through_batches(alice: User) -> None:
    rows = (ExampleRow(f"text {number}", "a") for number in range(4100))
    dataset = create_dataset(owner=alice, name="x", rows=rows, origin="x")
    assert list(dataset.examples.values_list("index", flat=True)) == list(range(4100))
