"""Which rows test a run: the chosen test set, marked rows, or rows held out now."""

import pytest
from django.contrib.auth.models import User

from apps.classifiers.errors import CannotTrain
from apps.classifiers.models import Classifier
from apps.classifiers.training.gather_rows import gather_rows
from apps.classifiers.training.label_quality.label_rules import LabelOptions
from apps.classifiers.training.rows import TrainingRows
from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset
from apps.files import ExampleRow

pytestmark = pytest.mark.django_db(transaction=True)


def examples(per_label: int, split: str | None = None, *, start: int = 0) -> list[ExampleRow]:
    return [
        ExampleRow(f"{label} number {number}", label, split)
        for number in range(start, start + per_label)
        for label in ("card", "rate")
    ]


def dataset(owner: User, given: list[ExampleRow], name: str = "Topics") -> Dataset:
    return create_dataset(owner=owner, name=name, rows=given, origin="tests")


def gathered(owner: User, given: list[ExampleRow], test: Dataset | None = None) -> TrainingRows:
    made = Classifier.objects.create(
        owner=owner, name="Topics", dataset=dataset(owner, given), test_dataset=test
    )
    return gather_rows(made, seed=0)


def test_marked_test_rows_test(alice: User) -> None:
    found = gathered(alice, examples(6) + examples(2, "test", start=20))
    assert (int(found.train.sum()), int(found.test.sum())) == (12, 4)
    assert found.test_source == "rows marked as test"
    assert found.notes == []


def test_validation_rows_test_if_none_are_marked_as_test(alice: User) -> None:
    found = gathered(alice, examples(6, "train") + examples(2, "validation", start=20))
    assert (int(found.train.sum()), int(found.test.sum())) == (12, 4)
    assert any("no test rows" in note for note in found.notes)


def test_validation_rows_are_trained_on_if_there_are_test_rows(alice: User) -> None:
    given = (
        examples(4, "train") + examples(2, "validation", start=20) + examples(1, "test", start=30)
    )
    found = gathered(alice, given)
    assert (int(found.train.sum()), int(found.test.sum())) == (12, 2)
    assert any("4 validation rows are trained on" in note for note in found.notes)


def test_a_fifth_is_held_out_in_an_unmarked_dataset_once(alice: User) -> None:
    made = Classifier.objects.create(
        owner=alice, name="Topics", dataset=dataset(alice, examples(10))
    )
    first, second = (gather_rows(made, seed=seed) for seed in (0, 1))
    assert int(first.test.sum()) == 4
    assert first.test.tolist() == second.test.tolist()
    assert made.dataset is not None
    made.dataset.refresh_from_db()
    assert made.dataset.test_rows == 4
    assert second.test_source == "rows marked as test"


def test_a_fifth_is_held_out_for_this_run_if_rows_are_marked_as_training(alice: User) -> None:
    made = Classifier.objects.create(
        owner=alice, name="Topics", dataset=dataset(alice, examples(10, "train"))
    )
    found = gather_rows(made, seed=0)
    assert int(found.test.sum()) == 4
    assert gather_rows(made, seed=0).test.tolist() == found.test.tolist()
    assert made.dataset is not None
    made.dataset.refresh_from_db()
    assert made.dataset.test_rows == 0


def test_a_test_set_of_its_own_tests(alice: User) -> None:
    test = dataset(alice, examples(3, start=50), "Held")
    found = gathered(alice, examples(6) + examples(2, "test", start=20), test)
    assert (int(found.train.sum()), int(found.test.sum())) == (12, 6)
    assert found.test_source == "the dataset “Held”"
    assert any("4 rows that the dataset marks as test are not used" in note for note in found.notes)
    assert [entry.dataset_id for entry in found.snapshots][1] == test.pk


def test_rows_held_out_by_an_earlier_run_are_trained_on_with_a_test_dataset(alice: User) -> None:
    made = Classifier.objects.create(
        owner=alice, name="Topics", dataset=dataset(alice, examples(10))
    )
    gather_rows(made, seed=0)
    made.test_dataset = dataset(alice, examples(3, start=50), "Held")
    found = gather_rows(made, seed=0)
    assert (int(found.train.sum()), int(found.test.sum())) == (20, 6)
    assert any("4 rows that an earlier run had held out" in note for note in found.notes)


def test_out_of_scope_rows_never_test(alice: User) -> None:
    given = examples(6) + examples(2, "test", start=20) + [ExampleRow("zebra", "oos", "test")]
    found = gathered(alice, given)
    assert int(found.test.sum()) == 4
    assert int(found.out_of_scope.sum()) == 1


def test_a_deleted_dataset_cannot_be_trained_on(alice: User) -> None:
    made = Classifier.objects.create(owner=alice, name="Topics")
    with pytest.raises(CannotTrain, match="was deleted"):
        gather_rows(made, seed=0)


def test_labels_with_one_text_each_cannot_be_divided(alice: User) -> None:
    with pytest.raises(CannotTrain, match="Add examples"):
        gathered(alice, [ExampleRow("one", "card"), ExampleRow("two", "rate")])


def test_oos_is_a_label_if_it_is_trained(alice: User) -> None:
    given = examples(4) + [ExampleRow(f"sold out {number}", "oos") for number in range(4)]
    made = Classifier.objects.create(owner=alice, name="Topics", dataset=dataset(alice, given))
    found = gather_rows(made, seed=0, choices=LabelOptions(train_oos=True))
    assert not found.out_of_scope.any()
    assert "oos" in {label for label, test in zip(found.labels, found.test, strict=True) if test}
