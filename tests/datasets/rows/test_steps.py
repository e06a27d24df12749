"""Steps of a change: inverted, counted, applied."""

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from apps.datasets.errors import BeingChanged
from apps.datasets.models import Dataset
from apps.datasets.rows import steps
from apps.datasets.rows.steps import CountChanges, Step
from apps.work.models import Task, TaskState
from tests.datasets.factories import change_task, create, create_many, shown

LABELLED = st.none() | st.fixed_dictionaries(
    {"label": st.sampled_from("ab"), "split": st.sampled_from(["", "test"])}
)
STEPS = st.lists(st.builds(Step, st.integers(0, 9), LABELLED, LABELLED), max_size=8)


@given(STEPS)
def test_count_changes_of_steps_and_their_inverses_cancel_out(made: list[Step]) -> None:
    counts = CountChanges()
    counts.add(made)
    counts.add([step.inverse for step in made])
    assert counts.rows == 2 * len(made)
    assert counts.added - counts.removed == 0
    assert not any(counts.labels.values())
    assert not any(counts.splits.values())


@given(st.builds(Step, st.integers(0, 9), LABELLED, LABELLED))
def test_inverse_of_the_inverse_is_the_step(step: Step) -> None:
    assert step.inverse.inverse == step


def test_count_changes_remembers_the_last_row_and_whether_rows_came_or_went() -> None:
    counts = CountChanges()
    counts.add([Step(4, {"label": "a"}, {"label": "b"})])
    assert (counts.last, counts.changes_row_count) == (4, False)
    counts.add([Step(2, {"label": "a", "split": ""}, None)])
    assert (counts.last, counts.changes_row_count) == (4, True)
    assert counts.labels == {"a": -2, "b": 1}


def test_chunks_split_a_list_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "CHUNK_ROWS", 3)
    assert list(steps.chunks(range(7))) == [range(3), range(3, 6), range(6, 7)]
    assert list(steps.chunks([])) == []


@pytest.mark.django_db
def test_apply_steps_adds_changes_and_deletes(alice: User) -> None:
    dataset = create(alice, [("one", "a"), ("two", "b"), ("three", "c")])
    new = {"text": "four", "label": "d", "split": "test", "origin": "", "meta": {"k": "v"}}
    made = [
        Step(0, {"label": "a"}, {"label": "z"}),
        Step(2, {"label": "c"}, {"label": "z"}),
        Step(1, {"text": "two"}, None),
        Step(3, None, new),
    ]
    steps.apply_steps(dataset, made)
    assert shown(dataset) == [(0, "one", "z", ""), (2, "three", "z", ""), (3, "four", "d", "test")]
    assert dataset.examples.get(index=3).meta == {"k": "v"}


@pytest.mark.django_db
def test_row_values_are_in_order_and_leave_out_missing_rows(alice: User) -> None:
    dataset = create_many(alice, 5)
    assert steps.row_values(dataset, [4, 99, 1], "label") == [(1, "label 1"), (4, "label 1")]


@pytest.mark.django_db
def test_lock_dataset_refuses_while_many_rows_are_changed(alice: User) -> None:
    dataset = create_many(alice, 2)
    change = change_task(dataset)
    with pytest.raises(BeingChanged, match="Try again when that is done"):
        steps.lock_dataset(dataset)
    Task.objects.filter(pk=change.pk).update(state=TaskState.FAILED, error="It failed.")
    assert steps.lock_dataset(dataset) == dataset


@pytest.mark.django_db
def test_count_duplicates_counts_rows_after_the_first_of_a_text(alice: User) -> None:
    dataset = create(alice, [("x", "a"), ("X ", "b"), ("x", ""), ("y", "a")])
    assert steps.count_duplicates(dataset) == 2
    Dataset.objects.get(pk=dataset.pk).examples.all().delete()
    assert steps.count_duplicates(dataset) == 0
