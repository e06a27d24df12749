"""The rows to review, their fields, and accepted rows that are similar."""

import pytest

from apps.batch.models import Item, ItemStatus
from apps.generation.models import Job
from apps.generation.review import similar_rows
from apps.generation.review.similar_rows import (
    find_similar_rows,
    review_queue,
    row_fields,
    sample_rows,
)
from tests.generation.conftest import finish, item_of


def indices(items: object) -> list[int]:
    return [item.index for item in items]  # type: ignore[attr-defined]


def test_the_queue_has_one_status_in_order(job: Job) -> None:
    Item.objects.filter(batch_id=job.batch_id, index=2).update(reviewed=True)
    assert indices(review_queue(job, "accepted", unseen=False)) == [0, 1, 2, 3, 4]
    assert indices(review_queue(job, "accepted", unseen=True)) == [0, 1, 3, 4]
    assert indices(review_queue(job, "rejected", unseen=True)) == [5]


def test_fields_of_the_model_can_be_edited_and_sampled_ones_not(job: Job) -> None:
    Item.objects.filter(batch_id=job.batch_id, index=0).update(
        edited={"text": "Better.", "label": "positive"}
    )
    found = {field.name: field for field in row_fields(job.spec, item_of(job, 0))}
    assert list(found) == ["text", "label", "sentiment", "product"]
    assert [name for name, field in found.items() if field.changed] == ["text"]
    assert (found["text"].value, found["text"].original) == ("Better.", "Text 0.")
    assert [name for name, field in found.items() if field.editable] == ["text", "label"]
    assert [name for name, field in found.items() if field.written] == ["text", "label"]


def test_fields_of_an_unfinished_row_cannot_be_edited(job: Job) -> None:
    finish(job, 5, ItemStatus.REJECTED, output={"text": "A."})
    assert not any(field.editable for field in row_fields(job.spec, item_of(job, 5)))


def test_similar_rows_are_accepted_ones_and_not_the_row_itself(job: Job) -> None:
    texts = ["A red kettle that sings.", "A red kettle that sings!", "A red kettle that sinks."]
    for index, text in enumerate(texts):
        output = {"text": text, "label": "positive"}
        finish(job, index, ItemStatus.ACCEPTED, output=output, fingerprint=str(index))
    Item.objects.filter(batch_id=job.batch_id, index=1).update(status=ItemStatus.REJECTED)
    found = find_similar_rows(job.spec, item_of(job, 0))
    assert (indices(found.rows), found.among) == ([2], 1)
    assert 0 < found.rows[0].share < 1
    found = find_similar_rows(job.spec, item_of(job, 1))  # of a rejected row: what it repeats
    assert indices(found.rows) == [0, 2]


def test_words_are_marked_in_close_rows_alone(job: Job) -> None:
    texts = [
        "A red kettle that sings.",
        "A red kettle that sinks.",
        "A red kettle for the garden, with a lid.",
    ]
    for index, text in enumerate(texts):
        output = {"text": text, "label": "positive"}
        finish(job, index, ItemStatus.ACCEPTED, output=output, fingerprint=str(index))
    close, far = find_similar_rows(job.spec, item_of(job, 0)).rows
    assert close.is_close
    assert [one.text for one in close.stretches if one.differs] == ["sinks."]
    assert not far.is_close
    assert [(one.text, one.differs) for one in far.stretches] == [(far.text, False)]


def test_a_row_without_text_is_similar_to_none(job: Job) -> None:
    finish(job, 0, ItemStatus.ACCEPTED, output={"text": " ", "label": "positive"})
    found = find_similar_rows(job.spec, item_of(job, 0))
    assert (found.rows, found.among) == ([], 0)


@pytest.mark.parametrize("size", [2, 4, 100])
def test_a_sample_is_random_but_in_order(job: Job, size: int) -> None:
    prints = dict(enumerate("dbace"))
    for index, fingerprint in prints.items():
        rows = Item.objects.filter(batch_id=job.batch_id, index=index)
        rows.update(fingerprint=fingerprint)
    chosen = sorted(sorted(prints, key=lambda index: prints[index])[:size])
    assert indices(sample_rows(job, size)) == chosen
    assert size < similar_rows.SAMPLE
