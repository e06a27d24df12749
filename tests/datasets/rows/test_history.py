"""Versions of a dataset: read again, hashed, gone with the dataset."""

import pytest
from django.contrib.auth.models import User

from apps.datasets import services
from apps.datasets.models import Dataset, DatasetState
from apps.datasets.rows import history
from apps.files import ExampleRow
from tests.datasets.factories import create, create_many

pytestmark = pytest.mark.django_db


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return create(alice, [("one", "a"), ("two", "b", "test"), ("three", "")])


def texts(dataset: Dataset, version: int) -> list[tuple[int, str, str]]:
    return [(row.index, row.text, row.label) for row in history.rows_at(dataset.pk, version)]


def test_rows_at_shows_deleted_rows_in_earlier_versions_alone(dataset: Dataset) -> None:
    services.delete_rows(dataset, [1])
    assert texts(dataset, 0) == [(0, "one", "a"), (1, "two", "b"), (2, "three", "")]
    assert texts(dataset, 1) == [(0, "one", "a"), (2, "three", "")]


def test_rows_at_leaves_out_rows_added_later(dataset: Dataset) -> None:
    services.add_rows(dataset, [ExampleRow("four", "d")])
    assert [index for index, *_ in texts(dataset, 0)] == [0, 1, 2]
    assert texts(dataset, 1)[-1] == (3, "four", "d")


def test_rows_at_reverts_a_row_that_was_added_relabelled_and_deleted(dataset: Dataset) -> None:
    services.add_rows(dataset, [ExampleRow("four", "d")])
    services.relabel_rows(dataset, [3], "e")
    services.delete_rows(dataset, [3])
    assert texts(dataset, 1)[-1] == (3, "four", "d")
    assert texts(dataset, 2)[-1] == (3, "four", "e")
    assert texts(dataset, 3) == texts(dataset, 0)


def test_rows_at_reads_across_chunks(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "CHUNK_ROWS", 7)
    dataset = create_many(alice, 30)
    services.merge_labels(dataset, ["label 0"], "label 1")
    services.delete_rows(dataset, [6, 7, 29])
    before = texts(dataset, 0)
    assert [index for index, *_ in before] == list(range(30))
    assert [label for *_, label in before] == [f"label {n % 3}" for n in range(30)]
    assert len(texts(dataset, 2)) == 27


def test_snapshot_has_the_same_hash_for_the_same_rows_only(dataset: Dataset, alice: User) -> None:
    ref = services.snapshot(dataset)
    assert (ref.dataset_id, ref.version, ref.rows) == (dataset.pk, 0, 3)
    same = create(alice, [("one", "a"), ("two", "b", "test"), ("three", "")])
    assert services.snapshot(same).hash == ref.hash
    services.set_split(dataset, [0], "train")
    assert services.snapshot(dataset).hash != ref.hash
    services.undo(dataset)
    again = services.snapshot(dataset)
    assert (again.hash, again.version) == (ref.hash, 2)


def test_read_snapshot_returns_the_rows_of_then(dataset: Dataset) -> None:
    ref = services.snapshot(dataset)
    services.relabel_rows(dataset, [0, 1, 2], "z")
    rows = list(services.read_snapshot(ref))
    assert [row.label for row in rows] == ["a", "b", ""]
    assert [row.split for row in rows] == ["", "test", ""]


@pytest.mark.parametrize("state", [DatasetState.DELETING, DatasetState.IMPORTING])
def test_read_snapshot_of_a_hidden_dataset_is_gone(dataset: Dataset, state: str) -> None:
    ref = services.snapshot(dataset)
    Dataset.objects.update(state=state)
    with pytest.raises(services.SnapshotGone, match="was deleted"):
        list(services.read_snapshot(ref))


def test_snapshot_of_a_deleted_dataset_is_gone(dataset: Dataset) -> None:
    Dataset.objects.filter(pk=dataset.pk).delete()
    with pytest.raises(services.SnapshotGone):
        services.snapshot(dataset)
