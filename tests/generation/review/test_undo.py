"""Undo of a review: a row as it was before."""

import pytest
from django.core import signing

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import Item, ItemStatus
from apps.generation.models import Job
from apps.generation.review import restore
from apps.generation.review.undo import SALT, undo_review, undo_token
from tests.generation.conftest import finish, item_of

OUTPUT = {"text": "A near-duplicate.", "label": "positive"}


def state(job: Job, index: int) -> tuple[str, str, str, bool]:
    item = item_of(job, index)
    return item.status, item.code, item.reason, item.reviewed


def test_a_rejected_row_is_accepted_again(job: Job) -> None:
    before, token = state(job, 0), undo_token(item_of(job, 0))
    batches.reject_row(item_of(job, 0))
    assert state(job, 0)[:2] == ("rejected", "by_hand")
    undo_review(item_of(job, 0), token, job.spec)
    assert state(job, 0) == before
    assert item_of(job, 0).fingerprint


def test_a_reviewed_row_is_unreviewed_again(job: Job) -> None:
    token = undo_token(item_of(job, 0))
    batches.mark_reviewed(item_of(job, 0))
    undo_review(item_of(job, 0), token, job.spec)
    assert state(job, 0) == ("accepted", "", "", False)


def test_a_restored_row_is_rejected_again_with_its_reason(job: Job) -> None:
    finish(job, 5, ItemStatus.REJECTED, code="near_duplicate", reason="Similar.", output=OUTPUT)
    token = undo_token(item_of(job, 5))
    restore.restore(item_of(job, 5), job.spec)
    assert item_of(job, 5).fingerprint
    undo_review(item_of(job, 5), token, job.spec)
    assert state(job, 5) == ("rejected", "near_duplicate", "Similar.", False)
    assert item_of(job, 5).fingerprint is None


@pytest.mark.parametrize("status", [ItemStatus.RUNNING, ItemStatus.FAILED])
def test_a_row_that_has_changed_meanwhile_stays(job: Job, status: ItemStatus) -> None:
    token = undo_token(item_of(job, 0))
    Item.objects.filter(batch_id=job.batch_id, index=0).update(status=status)
    with pytest.raises(WrongState, match="cannot be undone"):
        undo_review(item_of(job, 0), token, job.spec)
    assert item_of(job, 0).status == status


def test_a_token_of_another_row_or_of_no_review(job: Job) -> None:
    first = item_of(job, 0)
    forged = signing.dumps([first.pk, "accepted", "", "", False], salt="other")
    running = signing.dumps([first.pk, "running", "", "", False], salt=SALT)
    for token in ("", "x", forged, running, undo_token(item_of(job, 1))):
        with pytest.raises(WrongState, match=r"Nothing to undo\."):
            undo_review(first, token, job.spec)
