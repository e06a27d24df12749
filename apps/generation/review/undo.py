"""Undo in a review: a row as it was before somebody's last word about it."""

from typing import Any

from django.core import signing
from django.db import transaction

from apps.batch.errors import WrongState
from apps.batch.models import Item, ItemStatus
from apps.batch.services import set_review_state
from apps.generation.recipe.spec import Spec
from apps.generation.review import restore

SALT = "generation.review"
KEPT = ("status", "code", "reason", "reviewed")


def undo_token(item: Item) -> str:
    """Return the state of a row, signed. The page sends it back to undo a review."""
    return signing.dumps([item.pk, *(getattr(item, name) for name in KEPT)], salt=SALT)


@transaction.atomic
def undo_review(item: Item, before: str, spec: Spec) -> None:
    """The row is accepted, rejected or not yet looked at, as it was.

    Raises:
        WrongState: it has been changed otherwise meanwhile.
    """
    was = _read(before, item)
    if was["status"] == ItemStatus.ACCEPTED:
        if item.status == ItemStatus.REJECTED:
            restore.restore(item, spec)
        expected: tuple[str, ...] = (ItemStatus.ACCEPTED,)
    else:
        # A row that was requeued may not have started yet.
        expected = (ItemStatus.ACCEPTED, ItemStatus.PENDING)
        was["fingerprint"] = None
    set_review_state(item, expected, was)


def _read(before: str, item: Item) -> dict[str, Any]:
    try:
        pk, *values = signing.loads(before, salt=SALT)
    except signing.BadSignature:
        pk, values = None, []
    if pk != item.pk or values[0] not in (ItemStatus.ACCEPTED, ItemStatus.REJECTED):
        raise WrongState("Nothing to undo.")
    return dict(zip(KEPT, values, strict=True))
