"""Creating, pausing, resuming, cancelling and deleting jobs.

Decisions about a running job (refill, yield, daily limit) are in `job_policies`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, QuerySet, When
from django.utils import timezone

from apps.batch.errors import WrongState
from apps.batch.models import ACTIVE, Batch, BatchStatus, Item
from apps.batch.store.items import INSERT_ROWS, add_empty_items, add_items
from apps.core.schemas.json_types import JsonObject, JsonValue
from apps.servers.models import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """How a job is worked on."""

    weight: int = 1
    refill: bool = False
    """Replace rejected and failed rows until as many rows are accepted as there are inputs. A
    replacement's input is a `RowOrigin`."""
    tries: int = 5
    """Max rows created per row wanted."""
    width: int | None = None
    """Max rows in parallel; None for all slots."""
    daily_tokens: int | None = None
    """Pause until tomorrow after this many tokens."""
    all_servers: bool = False
    """Every server with the same model works on it."""
    may_fall_back: bool = False
    """The fallback for generation works on it while the job's server is away."""
    rows_follow: str = ""
    """Why it has no rows yet, as a sentence: it stays paused until `queue_filled`."""


@transaction.atomic
def create_batch(
    *,
    owner: User,
    server: Server,
    handler: str,
    spec: JsonObject,
    inputs: Iterable[JsonValue] | int,
    name: str = "",
    model: str = "",
    options: BatchOptions = BatchOptions(),  # frozen
) -> Batch:
    """Create a queued job with one pending row per input. 100,000 rows take seconds.

    Args:
        inputs: one per row; or the number of rows, where the index of a row is all it needs.
    """
    batch = Batch.objects.create(
        owner=owner,
        name=name[:200],
        server=server,
        model=model,
        handler=handler,
        spec=spec,
        weight=options.weight,
        tries=options.tries,
        width=options.width,
        daily_tokens=options.daily_tokens,
        all_servers=options.all_servers,
        may_fall_back=options.may_fall_back,
        status=BatchStatus.PAUSED if options.rows_follow else BatchStatus.QUEUED,
        reason=options.rows_follow,
    )
    if isinstance(inputs, int):
        add_empty_items(batch, inputs)
        batch.total = inputs
    else:
        batch.total = add_items(batch, inputs)
    batch.goal = batch.total if options.refill else None
    batch.save(update_fields=["total", "goal"])
    return batch


def change_batch(batch: Batch, **values: str | int | None) -> None:
    """Set `name`, `weight`, `width` or `daily_tokens`; a running job follows within a second."""
    for name, value in values.items():
        setattr(batch, name, value)
    batch.save(update_fields=list(values))


@transaction.atomic
def update_spec(batch: Batch, change: Callable[[JsonObject], JsonObject]) -> None:
    """Store `change(spec)`; a running pump reads it again and drops what it derived from the old.

    The batch stays locked until the end of the surrounding transaction.
    """
    locked = Batch.objects.select_for_update().get(pk=batch.pk)
    batch.spec = locked.spec = change(locked.spec)
    locked.save(update_fields=["spec"])


def pause_batch(batch: Batch) -> None:
    """Start no further row; rows in flight finish."""
    transition(batch, ACTIVE, BatchStatus.PAUSED, "Paused by you.")


def resume_batch(batch: Batch) -> None:
    """Continue a paused or failed job, with a fresh daily limit and yield."""
    transition(batch, (BatchStatus.PAUSED, BatchStatus.FAILED), BatchStatus.QUEUED, "")
    reset_limits(batch)


def reset_limits(batch: Batch) -> None:
    """Count yield, attempts and today's tokens from now on.

    A job that waits for tomorrow's limit goes on waiting.
    """
    Batch.objects.filter(pk=batch.pk).update(
        yield_counted_since=timezone.now(),
        rows_before_resume=F("total"),
        day=None,
        resumes_on=Case(When(status=BatchStatus.PAUSED, then=F("resumes_on"))),
    )


def cancel_batch(batch: Batch) -> None:
    """Stop permanently. Requests in flight are closed within a second; finished rows stay."""
    states = (*ACTIVE, BatchStatus.PAUSED, BatchStatus.FAILED)
    transition(batch, states, BatchStatus.CANCELLED, "")
    Batch.objects.filter(pk=batch.pk).update(finished=timezone.now())


def delete_batch(batch: Batch) -> None:
    """Delete a job with its rows. Requests in flight are closed within a second.

    A few thousand rows per transaction: other people write in between. An interrupted deletion
    leaves a cancelled job that can be deleted again.
    """
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.CANCELLED)
    for keys in keys_in_chunks(Item.objects.filter(batch=batch)):
        Item.objects.filter(pk__in=keys).delete()
    batch.delete()


def keys_in_chunks(items: QuerySet[Item]) -> Iterator[list[int]]:
    """Yield keys while rows match; the caller changes each chunk in a transaction of its own."""
    while keys := list(items.order_by("pk").values_list("pk", flat=True)[:INSERT_ROWS]):
        yield keys


def transition(batch: Batch, states: Iterable[str], to: BatchStatus, reason: str) -> None:
    """Move a job between states by a conditional update, so that of two people one succeeds.

    Raises:
        WrongState: the job is in none of `states`.
    """
    moved = Batch.objects.filter(pk=batch.pk, status__in=tuple(states)).update(
        status=to, reason=reason
    )
    batch.refresh_from_db(fields=["status", "reason"])
    if not moved:
        raise WrongState(f"The job is {batch.status}. This action is not available.")
