"""Changes to single rows, and bulk changes by a near-duplicate threshold."""

from typing import Any

import pytest
from django.utils import timezone

from apps.batch import services
from apps.batch.errors import WrongState
from apps.batch.handlers import RowOrigin
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from tests.batch.conftest import MakeBatch

pytestmark = pytest.mark.django_db(transaction=True)


def set_status(batch: Batch, status: str, **values: Any) -> None:
    batch.items.update(status=status, finished=timezone.now(), **values)


def statuses(batch: Batch) -> list[str]:
    return list(batch.items.order_by("index").values_list("status", flat=True))


def test_reject_row_takes_an_accepted_row_out(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    set_status(batch, ItemStatus.ACCEPTED, fingerprint="a")
    item = batch.items.get()
    services.reject_row(item)
    assert (item.status, item.code, item.fingerprint, item.reviewed) == (
        "rejected",
        "by_hand",
        None,
        True,
    )
    with pytest.raises(WrongState, match="The row is rejected"):
        services.reject_row(item)


def test_accept_row_stores_output_and_fingerprint(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    set_status(batch, ItemStatus.REJECTED, code="length", reason="Too long.")
    item = batch.items.get()
    services.accept_row(item, {"text": "Whole."}, "f")
    assert (item.status, item.code, item.reason) == ("accepted", "", "")
    assert (item.output, item.fingerprint, item.reviewed) == ({"text": "Whole."}, "f", True)


def test_requeue_row_continues_a_finished_job(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    set_status(batch, ItemStatus.REJECTED, attempts=3, minhash=b"x")
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.DONE)
    item = batch.items.get()
    services.requeue_row(item, RowOrigin(0), "Restored.")
    batch.refresh_from_db()
    assert (batch.status, item.status, item.attempts) == ("queued", "pending", 0)
    assert (item.input, item.minhash, item.reason) == ({"for": 0}, None, "Restored.")
    with pytest.raises(WrongState, match="Only rejected rows"):
        services.requeue_row(item, RowOrigin(0), "")


def test_requeue_row_refuses_a_cancelled_job(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    set_status(batch, ItemStatus.REJECTED)
    services.cancel_batch(batch)
    with pytest.raises(WrongState, match="cancelled"):
        services.requeue_row(batch.items.get(), RowOrigin(0), "")


def test_edit_row_keeps_the_output_and_drops_the_signature(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    set_status(batch, ItemStatus.ACCEPTED, output={"text": "a"}, minhash=b"x")
    item = batch.items.get()
    services.edit_row(item, {"text": "b"}, "f")
    item.refresh_from_db()
    assert (item.output, item.edited, item.current_output) == (
        {"text": "a"},
        {"text": "b"},
        {"text": "b"},
    )
    assert (item.minhash, item.fingerprint, item.reviewed) == (None, "f", True)


def test_set_review_state_needs_an_expected_status(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    item = batch.items.get()
    state = services.ReviewState(ItemStatus.PENDING, "", "", reviewed=True)
    services.set_review_state(item, [ItemStatus.PENDING], state)
    assert item.reviewed
    with pytest.raises(WrongState, match="cannot be undone"):
        services.set_review_state(item, [ItemStatus.ACCEPTED], state)


def test_reject_near_duplicates_leaves_reviewed_rows(make_batch: MakeBatch) -> None:
    batch = make_batch(3)
    set_status(batch, ItemStatus.ACCEPTED)
    batch.items.filter(index=1).update(reviewed=True)
    rows = [("near_duplicate", "Similar.", item.pk) for item in batch.items.all()]
    assert services.reject_near_duplicates(rows) == 2
    assert statuses(batch) == ["rejected", "accepted", "rejected"]
    assert services.reject_near_duplicates([]) == 0


def test_restore_near_duplicates_rejects_exact_duplicates(make_batch: MakeBatch) -> None:
    batch = make_batch(4)
    set_status(batch, ItemStatus.REJECTED, code="near_duplicate")
    batch.items.filter(index=0).update(status=ItemStatus.ACCEPTED, fingerprint="a", code="")
    keys = list(batch.items.order_by("index").values_list("pk", flat=True))
    prints = {keys[1]: "a", keys[2]: "b", keys[3]: "b"}
    assert services.restore_near_duplicates(batch.pk, keys[1:], prints) == 1
    assert statuses(batch) == ["accepted", "rejected", "accepted", "rejected"]
    reasons = batch.items.filter(code="duplicate").order_by("index")
    assert [item.reason for item in reasons] == ["Duplicate of row 1.", "Duplicate of row 3."]


def test_store_minhashes_fills_rows_without_one(make_batch: MakeBatch) -> None:
    batch = make_batch(2)
    batch.items.filter(index=0).update(minhash=b"old")
    services.store_minhashes([(b"new", item.pk) for item in batch.items.all()])
    found = Item.objects.filter(batch=batch).order_by("index").values_list("minhash", flat=True)
    assert [bytes(value or b"") for value in found] == [b"old", b"new"]
