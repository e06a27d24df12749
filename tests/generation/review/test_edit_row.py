"""Edited fields of a row: of the kind they were, and within their schema."""

from typing import Any

import pytest

from apps.batch.errors import WrongState
from apps.batch.models import Item, ItemStatus
from apps.generation.models import Job
from apps.generation.recipe.problems import RecipeError
from apps.generation.review.edit_row import edit_row
from apps.generation.rows import answer_check
from tests.generation.conftest import finish, item_of


def edit(job: Job, index: int, **fields: str) -> Item:
    edit_row(item_of(job, index), fields, job.spec)
    return item_of(job, index)


def with_values(job: Job, **values: Any) -> None:
    finish(job, 0, ItemStatus.ACCEPTED, output={"text": "A.", "label": "positive", **values})


def test_edit_keeps_the_original_output(job: Job) -> None:
    Item.objects.filter(batch_id=job.batch_id, index=0).update(minhash=b"old")
    found = edit(job, 0, text="B.")
    assert found.edited == {"text": "B.", "label": "positive"}
    assert found.output == {"text": "Text 0.", "label": "positive"}
    assert (found.reviewed, found.minhash) == (True, None)
    assert found.fingerprint == answer_check.fingerprint(["B."])


def test_a_second_edit_keeps_the_first(job: Job) -> None:
    edit(job, 0, text="B.")
    found = edit(job, 0, label="negative")
    assert found.edited == {"text": "B.", "label": "negative"}


def test_the_original_text_takes_the_edit_back(job: Job) -> None:
    edit(job, 0, text="B.")
    assert edit(job, 0, text="Text 0.").edited is None


@pytest.mark.parametrize(
    ("value", "text", "edited"),
    [
        (1, "2", 2),
        (1.5, "2.25", 2.25),
        (True, "false", False),
        (["a"], '["b", 1]', ["b", 1]),
        ({"city": "A"}, '{"city": "B"}', {"city": "B"}),
        (None, "2", "2"),
        ("one", "two\r\nlines", "two\nlines"),
    ],
)
def test_a_value_is_read_as_its_kind(job: Job, value: Any, text: str, edited: Any) -> None:
    with_values(job, extra=value)
    found = edit(job, 0, extra=text).edited
    assert found["extra"] == edited
    assert type(found["extra"]) is type(edited)


def test_every_problem_has_its_place_and_nothing_is_saved(job: Job) -> None:
    with_values(job, stars=3)
    with pytest.raises(RecipeError) as raised:
        edit(job, 0, stars="many", unknown="x", label="so-so", text="Fine.")
    places = [problem.place[0] for problem in raised.value.problems]
    assert places[:2] == ["stars", "unknown"]
    assert len(places) == 3
    assert "does not match the schema" in str(raised.value)
    assert item_of(job, 0).edited is None


def test_a_text_that_another_row_has_leaves_no_fingerprint(job: Job) -> None:
    assert edit(job, 0, text="Same.").fingerprint
    assert edit(job, 1, text=" same. ").fingerprint is None


def test_a_rejected_row_keeps_its_fingerprint(job: Job) -> None:
    output = {"text": "A.", "label": "positive"}
    finish(job, 5, ItemStatus.REJECTED, code="judged", output=output, fingerprint="old")
    assert edit(job, 5, text="B.").fingerprint == "old"


@pytest.mark.parametrize("output", [None, "Plain.", ["A"]])
def test_a_row_without_fields(job: Job, output: Any) -> None:
    finish(job, 0, ItemStatus.ACCEPTED, output=output)
    with pytest.raises(WrongState, match="no fields to edit"):
        edit(job, 0, text="B.")


def test_a_row_that_is_not_complete(job: Job) -> None:
    finish(job, 0, ItemStatus.REJECTED, output={"text": "A."})
    with pytest.raises(WrongState, match="Not all columns are written yet"):
        edit(job, 0, text="B.")
