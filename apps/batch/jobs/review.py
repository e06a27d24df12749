"""Changes that people make to single rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from django.db import transaction
from django.utils import timezone

from apps.batch.errors import WrongState
from apps.batch.handlers import RowOrigin, RowValues
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus

ONLY_REJECTED = "The row is {}. Only rejected rows can be restored."
ROWS_PER_QUERY = 500


@transaction.atomic
def accept_row(item: Item, output: RowValues | None = None, fingerprint: str | None = None) -> None:
    """Accept a rejected row and delete its replacement if that has not started.

    Args:
        output: stored as the row's output; None keeps what is there.

    Raises:
        WrongState: the row is not rejected.
    """
    # A refill reads the same row: the lock decides which of the two comes first.
    Batch.objects.select_for_update().get(pk=item.batch_id)
    values: dict[str, Any] = {} if output is None else {"output": output}
    restored = Item.objects.filter(pk=item.pk, status=ItemStatus.REJECTED).update(
        status=ItemStatus.ACCEPTED,
        code="",
        reason="",
        reviewed=True,
        finished=timezone.now(),
        fingerprint=fingerprint,
        **values,
    )
    item.refresh_from_db()
    if not restored:
        raise WrongState(ONLY_REJECTED.format(item.status))
    delete_unstarted_replacements(item.batch_id, [item])
    item.refresh_from_db()


@transaction.atomic
def requeue_row(item: Item, origin: RowOrigin, reason: str) -> None:
    """Return a rejected row to pending, to be continued; a finished job continues.

    Raises:
        WrongState: the row is not rejected, or its job was cancelled.
    """
    batch = Batch.objects.select_for_update().get(pk=item.batch_id)
    if batch.status == BatchStatus.CANCELLED:
        raise WrongState("This job was cancelled. The rest of the row cannot be generated.")
    requeued = Item.objects.filter(pk=item.pk, status=ItemStatus.REJECTED).update(
        status=ItemStatus.PENDING,
        server=None,
        code="",
        reason=reason,
        input=origin.to_json(),
        reviewed=True,
        attempts=0,
        not_before=None,
        finished=None,
        minhash=None,
    )
    item.refresh_from_db()
    if not requeued:
        raise WrongState(ONLY_REJECTED.format(item.status))
    delete_unstarted_replacements(item.batch_id, [item])
    Batch.objects.filter(pk=batch.pk, status=BatchStatus.DONE).update(
        status=BatchStatus.QUEUED, reason="", finished=None
    )
    item.refresh_from_db()


def reject_row(item: Item, reason: str = "Rejected by you.") -> None:
    """Reject an accepted row; a running job that refills creates another.

    Raises:
        WrongState: the row is not accepted.
    """
    rejected = Item.objects.filter(pk=item.pk, status=ItemStatus.ACCEPTED).update(
        status=ItemStatus.REJECTED, code="by_hand", reason=reason, fingerprint=None, reviewed=True
    )
    if not rejected:
        raise WrongState(f"The row is {item.status}. Only accepted rows can be rejected.")
    item.refresh_from_db()


def edit_row(item: Item, edited: RowValues | None, fingerprint: str | None) -> None:
    """Store edited fields beside the model's output; None takes the edit back.

    The signature of the old text is dropped and computed again when it is needed.
    """
    item.edited, item.reviewed, item.minhash = edited, True, None
    item.fingerprint = fingerprint
    item.save(update_fields=["edited", "reviewed", "minhash", "fingerprint"])


def mark_reviewed(item: Item) -> None:
    Item.objects.filter(pk=item.pk).update(reviewed=True)


@dataclass(frozen=True, slots=True)
class ReviewState:
    """What an undo puts back."""

    status: str
    code: str
    reason: str
    reviewed: bool

    @classmethod
    def of(cls, item: Item) -> Self:
        return cls(item.status, item.code, item.reason, item.reviewed)


def set_review_state(item: Item, expected: Sequence[str], state: ReviewState) -> None:
    """Put back the state of a row; a rejected row has no fingerprint.

    Raises:
        WrongState: the row has none of the `expected` statuses any more.
    """
    values: dict[str, Any] = asdict(state)
    if state.status == ItemStatus.REJECTED:
        values["fingerprint"] = None
    if not Item.objects.filter(pk=item.pk, status__in=expected).update(**values):
        raise WrongState(f"The row is {item.status}. This cannot be undone.")
    item.refresh_from_db()


def delete_unstarted_replacements(batch_id: int, items: Iterable[Item]) -> None:
    """Delete replacements of restored rows that no pump has started."""
    wanted = {item.original_index: item.pk for item in items if item.replaced}
    for part in _chunks(sorted(wanted)):
        # The pump holds a row that starts at this moment; that row stays.
        spares = Item.objects.select_for_update(skip_locked=True).filter(
            batch_id=batch_id,
            status=ItemStatus.PENDING,
            input__in=[RowOrigin(index).to_json() for index in part],
            prompt="",
        )
        found = {item.original_index: item.pk for item in spares.only("pk", "index", "input")}
        Item.objects.filter(pk__in=found.values(), status=ItemStatus.PENDING).delete()
        # Rejected again, the row needs a replacement again.
        Item.objects.filter(pk__in=[wanted[index] for index in found]).update(replaced=False)


def _chunks(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    return (keys[start : start + ROWS_PER_QUERY] for start in range(0, len(keys), ROWS_PER_QUERY))
