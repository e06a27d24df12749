"""Undo in a review: a row as it was before its last review."""

from dataclasses import astuple

from django.core import signing
from django.db import transaction

from apps.batch.errors import WrongState
from apps.batch.models import Item, ItemStatus
from apps.batch.services import ReviewState, set_review_state
from apps.generation.recipe.spec import Spec
from apps.generation.review import restore

SALT = "generation.review"


def undo_token(item: Item) -> str:
    """Return the state of a row, signed. The page sends it back to undo a review."""
    return signing.dumps([item.pk, *astuple(ReviewState.of(item))], salt=SALT)


@transaction.atomic
def undo_review(item: Item, before: str, spec: Spec) -> None:
    """Put a row back to accepted, rejected or unreviewed, as it was.

    Raises:
        WrongState: it has been changed in another way since.
    """
    state = _read(before, item)
    # A row that was requeued may not have started yet.
    expected: tuple[str, ...] = (ItemStatus.ACCEPTED, ItemStatus.PENDING)
    if state.status == ItemStatus.ACCEPTED:
        if item.status == ItemStatus.REJECTED:
            restore.restore(item, spec)
        expected = (ItemStatus.ACCEPTED,)
    set_review_state(item, expected, state)


def _read(before: str, item: Item) -> ReviewState:
    try:
        pk, *values = signing.loads(before, salt=SALT)
    except signing.BadSignature:
        pk, values = None, []
    if pk != item.pk or values[0] not in (ItemStatus.ACCEPTED, ItemStatus.REJECTED):
        raise WrongState("Nothing to undo.")
    return ReviewState(*values)
