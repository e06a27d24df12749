"""The fields of a row: edits first, drawn values back where an old row lacks them."""

import pytest
from django.contrib.auth.models import User

from apps.batch.models import Item, ItemStatus
from apps.generation.exports.row_fields import accepted_rows, cells, full_row, is_complete
from apps.generation.models import Job
from apps.servers.models import Server
from tests.generation.conftest import finish, new_job

FIELDS = ["text", "label", "sentiment", "product"]


@pytest.fixture
def old_job(alice: User, server: Server) -> Job:
    return new_job(alice, server, rows=4)


def row(job: Job, index: int) -> Item:
    return Item.objects.get(batch_id=job.batch_id, index=index)


def test_a_row_without_its_drawn_values_gets_them_back(old_job: Job) -> None:
    finish(old_job, 0, ItemStatus.ACCEPTED, output={"text": "A", "label": "positive"})
    found = full_row(old_job.spec, row(old_job, 0))
    assert list(found) == FIELDS
    assert found["sentiment"] in {"positive", "negative"}
    assert found == full_row(old_job.spec, row(old_job, 0))


def test_an_edit_counts(old_job: Job) -> None:
    values = {"text": "A", "label": "positive", "sentiment": "s", "product": "p"}
    finish(old_job, 0, ItemStatus.ACCEPTED, output=values, edited={**values, "text": "B"})
    assert full_row(old_job.spec, row(old_job, 0))["text"] == "B"


def test_a_text_alone_is_the_field_text(old_job: Job) -> None:
    finish(old_job, 0, ItemStatus.ACCEPTED, output="Plain.")
    assert full_row(old_job.spec, row(old_job, 0))["text"] == "Plain."


def test_a_row_is_complete_with_all_required_fields(old_job: Job) -> None:
    finish(old_job, 0, ItemStatus.ACCEPTED, output={"text": "A", "label": "positive"})
    finish(old_job, 1, ItemStatus.ACCEPTED, output={"label": "positive"})
    spec = old_job.spec
    assert [is_complete(spec, row(old_job, index)) for index in (0, 1)] == [True, False]


def test_an_optional_field_may_be_missing(alice: User, server: Server) -> None:
    schema = {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string"}, "note": {"type": "string"}},
    }
    job = new_job(alice, server, schema=schema)
    finish(job, 0, ItemStatus.ACCEPTED, output={"text": "A"})
    assert is_complete(job.spec, row(job, 0))


def test_accepted_rows_come_in_order_and_in_pieces(old_job: Job) -> None:
    for index in (3, 0, 2):
        finish(old_job, index, ItemStatus.ACCEPTED, output={"text": str(index)})
    finish(old_job, 1, ItemStatus.REJECTED, output={"text": "1"}, code="length")
    assert [item.index for item in accepted_rows(old_job, -1)] == [0, 2, 3]
    assert [item.index for item in accepted_rows(old_job, -1, limit=2)] == [0, 2]
    assert [item.index for item in accepted_rows(old_job, 2)] == [3]
    assert accepted_rows(old_job, 3) == []


def test_cells_are_texts_and_none_before_the_answer(old_job: Job) -> None:
    assert cells(old_job.spec, row(old_job, 0), FIELDS) is None
    finish(old_job, 0, ItemStatus.ACCEPTED, output={"text": "A", "label": ["x", 1]})
    assert cells(old_job.spec, row(old_job, 0), ["label", "text", "nothing"]) == [
        '["x", 1]',
        "A",
        "",
    ]
