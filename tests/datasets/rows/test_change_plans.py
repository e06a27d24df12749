"""Plans of changes of many rows: their sentences, their steps, their errors."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.datasets import services
from apps.datasets.models import Dataset
from apps.datasets.rows.browsing import Filters
from apps.datasets.rows.bulk_changes import ChangePlan
from apps.datasets.rows.change_plans import PLANNERS
from apps.files import ExampleRow
from tests.datasets.factories import create


@pytest.fixture
def dataset(alice: User) -> Dataset:
    rows = [("x", "a"), ("X ", "a", "test"), ("y", "b"), ("z", ""), ("y", "b")]
    return create(alice, rows)


def plan(dataset: Dataset, kind: str, **args: Any) -> ChangePlan:
    return PLANNERS[kind](dataset, args)


def indices(planned: ChangePlan) -> list[int]:
    return [step.index for chunk in planned.chunks() for step in chunk]


def test_deduplicate_keeps_a_test_row_in_place_of_its_training_duplicate(dataset: Dataset) -> None:
    planned = plan(dataset, "deduplicate")
    assert planned.description == "2 rows deleted as duplicates"
    assert indices(planned) == [0, 4]


@pytest.mark.parametrize(
    ("args", "description"),
    [
        ({"action": "label", "value": "c"}, "2 rows that match a filter became “c”"),
        ({"action": "split", "value": "test"}, "2 rows that match a filter moved to test"),
        ({"action": "delete", "value": ""}, "2 rows that match a filter were deleted"),
    ],
)
def test_matching_describes_its_action(
    dataset: Dataset, args: dict[str, str], description: str
) -> None:
    planned = plan(dataset, "matching", filters=Filters(label="b").as_json(), **args)
    assert (planned.description, planned.rows) == (description, 2)
    assert indices(planned) == [2, 4]


def test_matching_without_a_row_has_no_steps(dataset: Dataset) -> None:
    filters = Filters(search="nothing has this").as_json()
    planned = plan(dataset, "matching", filters=filters, action="delete", value="")
    assert (planned.rows, indices(planned)) == (0, [])


def test_merge_names_three_labels_and_counts_the_others(alice: User) -> None:
    dataset = create(alice, [(f"text {n}", f"l{n}") for n in range(6)])
    planned = plan(dataset, "merge", labels=[f"l{n}" for n in range(6)], into="l5")
    assert planned.description == "“l0”, “l1”, “l2” and 2 more merged into “l5” (5 rows)"
    assert planned.rows == 5


def test_split_gives_a_repeated_text_the_split_it_has(dataset: Dataset) -> None:
    more = [("u", "b"), ("v", "b"), ("w", "b")]
    services.add_rows(dataset, [ExampleRow(*row) for row in more])
    planned = plan(dataset, "split", share=0.5, seed=0)
    new = {step.index: (step.after or {})["split"] for c in planned.chunks() for step in c}
    assert new[0] == "test"  # the text of row 1, which is a test row
    assert new[2] == new[4]
    assert 3 not in new


def test_split_needs_a_label_with_two_texts(alice: User) -> None:
    dataset = create(alice, [("x", "a"), ("x", "a"), ("y", "b")])
    with pytest.raises(ValueError, match="Each label has only one text"):
        plan(dataset, "split", share=0.2, seed=0)


def test_undo_refuses_a_revision_that_is_not_the_last(dataset: Dataset) -> None:
    services.relabel_rows(dataset, [0], "c")
    services.relabel_rows(dataset, [0], "d")
    with pytest.raises(ValueError, match="changed meanwhile"):
        plan(dataset, "undo", number=1)
    planned = plan(dataset, "undo", number=2)
    assert planned.description == "Undone: Row 1: label changed from “c” to “d”"
    assert indices(planned) == [0]
