"""Changes of rows: what they do, that they are counted, that they can be undone."""

import random
from collections import Counter

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from apps.datasets import services
from apps.datasets.models import Dataset
from apps.files import MAX_LABELS, ExampleRow
from tests.datasets.factories import create, create_many, shown

pytestmark = pytest.mark.django_db


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return create(alice, [("one", "a"), ("two", "b", "test"), ("three", ""), ("One ", "A")])


def check_counts(dataset: Dataset) -> None:
    """What a dataset says of itself is what its rows say."""
    dataset.refresh_from_db()
    rows = list(dataset.examples.all())
    labels = Counter(row.label for row in rows)
    assert dataset.rows == len(rows)
    assert dataset.unlabelled == labels.pop("", 0)
    assert dataset.label_counts == labels
    assert dataset.split_counts == Counter(row.split for row in rows if row.split)
    assert dataset.duplicates == len(rows) - len({row.text_key for row in rows})
    assert dataset.version == dataset.revisions.count()


def test_relabel_saves_the_label_a_version_and_a_revision(dataset: Dataset, alice: User) -> None:
    example = services.relabel(dataset.examples.get(index=2), "  b ", by=alice)
    assert (example.label, example.dataset.version) == ("b", 1)
    revision = dataset.revisions.get()
    assert (revision.what, revision.by, revision.rows) == (
        "Row 3: label changed from unlabelled to “b”",
        alice,
        1,
    )
    check_counts(dataset)


def test_the_same_label_changes_nothing(dataset: Dataset) -> None:
    services.relabel(dataset.examples.get(index=0), "a")
    assert services.relabel_rows(dataset, [0, 99], "a") is None
    check_counts(dataset)
    assert dataset.version == 0


def test_everything_can_be_undone_step_by_step(dataset: Dataset) -> None:
    before = [shown(dataset)]
    services.relabel_rows(dataset, [0, 1], "c")
    before.append(shown(dataset))
    services.delete_rows(dataset, [1, 3])
    before.append(shown(dataset))
    services.add_rows(dataset, [ExampleRow("four", "d", "train"), ExampleRow("five", "")])
    before.append(shown(dataset))
    services.set_split(dataset, [0, 2], "test")
    before.append(shown(dataset))
    services.merge_labels(dataset, ["c", "d"], "e")
    check_counts(dataset)
    for rows in reversed(before):
        assert services.undo(dataset) is not None
        check_counts(dataset)
        assert shown(dataset) == rows
    assert services.undo(dataset) is None
    assert dataset.version == 10  # undoing is a change too: no version is used twice


def test_after_an_undo_a_new_change_is_undone_first(dataset: Dataset) -> None:
    services.relabel_rows(dataset, [0], "x")
    services.relabel_rows(dataset, [0], "y")
    services.undo(dataset)
    services.relabel_rows(dataset, [0], "z")
    services.undo(dataset)
    assert shown(dataset)[0][2] == "x"
    services.undo(dataset)
    assert shown(dataset)[0][2] == "a"


def test_places_are_not_used_twice(dataset: Dataset) -> None:
    services.delete_rows(dataset, [3])
    services.add_rows(dataset, [ExampleRow("new", "a")])
    assert [index for index, *_ in shown(dataset)] == [0, 1, 2, 4]


def test_deleted_rows_come_back_whole(alice: User) -> None:
    row = ExampleRow("hello", "a", "test", "row 7", {"id": "42"})
    dataset = services.create_dataset(owner=alice, name="x", rows=[row], origin="x")
    assert dataset.extra_columns == ["id"]
    services.delete_rows(dataset, [0])
    services.undo(dataset)
    assert dataset.examples.get().row == row


def test_added_rows_are_checked(dataset: Dataset) -> None:
    rows = [ExampleRow("good", " a "), ExampleRow(" ", "a"), ExampleRow("b", "a", "tset")]
    revision, rejected = services.add_rows(dataset, rows)
    assert revision is not None
    assert revision.rows == 1
    assert [(row.row, row.column) for row in rejected] == [(2, "text"), (3, "split")]
    assert services.add_rows(dataset, [ExampleRow("", "")])[0] is None
    check_counts(dataset)


@pytest.mark.parametrize(
    ("description", "shown"),
    [("", "1 row added"), ("Added by a job", "Added by a job"), ("x" * 400, "x" * 300)],
)
def test_added_rows_are_described_in_the_history(
    dataset: Dataset, description: str, shown: str
) -> None:
    services.add_rows(dataset, [ExampleRow("good", "a")], description=description)
    assert dataset.revisions.latest("pk").what == shown


def test_repeated_rows_go_but_for_one_and_a_test_row_stays(alice: User) -> None:
    rows = [("x", "a"), ("X ", "a", "test"), ("x", "b"), ("y", "a"), ("y", "a")]
    dataset = create(alice, rows)
    services.delete_duplicates(dataset)
    assert [index for index, *_ in shown(dataset)] == [1, 2, 3]
    check_counts(dataset)


def test_a_split_keeps_equal_texts_together(alice: User) -> None:
    rows = [(f"text {n % 40}", f"label {n % 4}") for n in range(80)]
    dataset = create(alice, [*rows, ("alone", "rare"), ("no label", "")])
    revision = services.make_split(dataset, share=0.25, seed=3)
    assert revision is not None
    check_counts(dataset)
    sides: dict[str, set[str]] = {}
    for _, text, _, split in shown(dataset):
        sides.setdefault(text, set()).add(split)
    assert all(len(side) == 1 for side in sides.values())
    assert sides["alone"] == {"train"}
    assert sides["no label"] == {""}
    assert 16 <= dataset.test_rows <= 24
    before = shown(dataset)
    assert services.make_split(dataset, share=0.25, seed=3) is None  # the same again
    assert shown(dataset) == before


@pytest.mark.parametrize("label", ["x" * 201, "a\0b", "\ud800"])
def test_a_bad_label_is_said(dataset: Dataset, label: str) -> None:
    with pytest.raises(ValueError):
        services.relabel(dataset.examples.get(index=0), label)
    assert shown(dataset)[0][2] == "a"


def test_too_many_labels_are_said(dataset: Dataset) -> None:
    Dataset.objects.filter(pk=dataset.pk).update(
        label_counts={f"label {n}": 1 for n in range(MAX_LABELS)}
    )
    dataset.refresh_from_db()
    with pytest.raises(ValueError, match="Too many labels"):
        services.relabel(dataset.examples.get(index=0), "one more")


def test_edits_refuse_an_unknown_split_or_label(dataset: Dataset) -> None:
    with pytest.raises(ValueError, match="not a valid split"):
        services.set_split(dataset, [0], "tset")
    with pytest.raises(ValueError, match="Choose the label"):
        services.merge_labels(dataset, ["a"], " ")
    assert services.merge_labels(dataset, ["nope"], "a") is None


def test_any_version_can_be_read_again(alice: User) -> None:
    """A hundred random changes: each version's snapshot is what the rows were then."""
    dataset = create_many(alice, 30)
    choose = random.Random(1)
    kept = [(services.snapshot(dataset), shown(dataset))]
    for step in range(40):
        places = [index for index, *_ in shown(dataset)]
        some = choose.sample(places, min(3, len(places)))
        match choose.randrange(6):
            case 0 | 1:
                services.relabel_rows(dataset, some, f"new {choose.randrange(3)}")
            case 2:
                services.delete_rows(dataset, some[:1])
            case 3:
                services.add_rows(dataset, [ExampleRow(f"added {step}", "label 1")])
            case 4:
                services.set_split(dataset, some, choose.choice(["train", "test", ""]))
            case _:
                services.undo(dataset)
        kept.append((services.snapshot(dataset), shown(dataset)))
    check_counts(dataset)
    for ref, rows in kept:
        read = [(row.index, row.text, row.label, row.split) for row in services.read_snapshot(ref)]
        assert read == rows
        assert ref.rows == len(rows)
    by_hash = {ref.hash: rows for ref, rows in kept}
    assert all(by_hash[ref.hash] == rows for ref, rows in kept)


def test_a_snapshot_of_a_deleted_dataset_is_gone(dataset: Dataset) -> None:
    ref = services.snapshot(dataset)
    dataset.delete()
    with pytest.raises(services.SnapshotGone):
        list(services.read_snapshot(ref))


def test_a_large_change_takes_few_queries(
    alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    dataset = create_many(alice, 2_000, labels=2)
    with django_assert_max_num_queries(42):
        services.merge_labels(dataset, ["label 0"], "label 1")
    check_counts(dataset)
    with django_assert_max_num_queries(42):
        services.undo(dataset)
    check_counts(dataset)
