"""Making jobs, and what people do with them. A job's pump is woken by `apps.batch.tasks.wake`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Count, Exists, Min, OuterRef, Q, Sum
from django.utils import timezone

from apps.batch.models import (
    ACTIVE,
    FINISHED,
    OPEN,
    Batch,
    BatchStatus,
    Item,
    ItemStatus,
    PumpLease,
)
from apps.llm.models import Server

RATE_WINDOW = timedelta(seconds=30)
INSERT_ROWS = 2000


class WrongState(Exception):
    """The job is not in a state in which this can be done. The message says which."""


@transaction.atomic
def create_batch(
    *,
    owner: User,
    server: Server,
    handler: str,
    spec: dict[str, Any],
    inputs: Iterable[Any],
    model: str = "",
    weight: int = 1,
) -> Batch:
    """A queued job with one pending row per input, all or nothing. 100,000 rows take seconds."""
    batch = Batch.objects.create(
        owner=owner, server=server, model=model, handler=handler, spec=spec, weight=weight
    )
    batch.total = _add_items(batch, inputs)
    batch.save(update_fields=["total"])
    return batch


def _add_items(batch: Batch, inputs: Iterable[Any]) -> int:
    """One row per input, in order; returns how many.

    Django prepares one row, the driver inserts the others like it: bulk_create spends 20 times as
    long on making objects and asking each field of each.
    """
    fields = [field for field in Item._meta.local_concrete_fields if not field.primary_key]
    names = [field.name for field in fields]
    like = Item(batch=batch, index=0)
    values = [field.get_db_prep_save(field.value_from_object(like), connection) for field in fields]
    at_index, at_input = names.index("index"), names.index("input")

    def rows() -> Iterator[list[Any]]:
        for index, given in enumerate(inputs):
            row = values.copy()
            row[at_index] = index
            row[at_input] = fields[at_input].get_db_prep_save(given, connection)
            yield row

    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    insert = f"INSERT INTO {quote(Item._meta.db_table)} ({columns}) VALUES ({marks})"  # noqa: S608 - names of ours
    source, count = rows(), 0
    with connection.cursor() as cursor:
        while chunk := list(islice(source, INSERT_ROWS)):
            cursor.executemany(insert, chunk)
            count += len(chunk)
    return count


def pause(batch: Batch) -> None:
    """Rows in flight finish, no new one starts."""
    _move(batch, ACTIVE, BatchStatus.PAUSED, "Paused by you.")


def resume(batch: Batch) -> None:
    _move(batch, (BatchStatus.PAUSED, BatchStatus.FAILED), BatchStatus.QUEUED, "")


def cancel(batch: Batch) -> None:
    """For good. Requests in flight are closed within a second; what is there stays."""
    _move(batch, (*ACTIVE, BatchStatus.PAUSED, BatchStatus.FAILED), BatchStatus.CANCELLED, "")
    Batch.objects.filter(pk=batch.pk).update(finished=timezone.now())


@transaction.atomic
def retry_failed(batch: Batch) -> int:
    """Failed rows are pending again, with all their attempts. Returns how many."""
    if batch.status == BatchStatus.CANCELLED:
        raise WrongState("The job was cancelled. Start a new one.")
    count = Item.objects.filter(batch=batch, status=ItemStatus.FAILED).update(
        status=ItemStatus.PENDING, code="", reason="", attempts=0, not_before=None, finished=None
    )
    if not count:
        raise WrongState("No row has failed.")
    Batch.objects.filter(pk=batch.pk, status__in=(BatchStatus.DONE, BatchStatus.FAILED)).update(
        status=BatchStatus.QUEUED, reason="", finished=None
    )
    batch.refresh_from_db(fields=["status", "reason", "finished"])
    return count


def _move(batch: Batch, states: Iterable[str], to: BatchStatus, reason: str) -> None:
    """A conditional update: two people, or a person and the pump, cannot both be right."""
    moved = Batch.objects.filter(pk=batch.pk, status__in=tuple(states)).update(
        status=to, reason=reason
    )
    batch.refresh_from_db(fields=["status", "reason"])
    if not moved:
        raise WrongState(f"The job is {batch.status}: this cannot be done with it now.")


@dataclass(frozen=True)
class Progress:
    """How a job stands. Rates are of the last seconds while it runs, of the whole afterwards."""

    counts: dict[str, int]
    total: int
    reasons: list[tuple[str, str, int]]
    """(status, code, rows) of what was rejected or failed, most frequent first."""
    rows_per_s: float | None
    tokens_per_s: float | None
    eta_s: float | None
    cached_share: float | None
    width: int

    @property
    def finished(self) -> int:
        return sum(self.counts[status] for status in FINISHED)

    @property
    def open(self) -> int:
        return sum(self.counts[status] for status in OPEN)


def progress(batch: Batch) -> Progress:
    """Two queries, however many rows there are."""
    grouped = list(
        Item.objects.filter(batch=batch)
        .values_list("status", "code")
        .annotate(rows=Count("pk"))
        .order_by("-rows")
    )
    counts = dict.fromkeys(ItemStatus.values, 0)
    for status, _, rows in grouped:
        counts[status] += rows
    bad = (ItemStatus.REJECTED, ItemStatus.FAILED)
    finished = sum(counts[status] for status in FINISHED)
    rows_per_s, tokens_per_s = _rates(batch, finished)
    left = sum(counts[status] for status in OPEN)
    running = batch.status == BatchStatus.RUNNING
    return Progress(
        counts=counts,
        total=batch.total,
        reasons=[(status, code, rows) for status, code, rows in grouped if status in bad],
        rows_per_s=rows_per_s,
        tokens_per_s=tokens_per_s,
        eta_s=left / rows_per_s if running and rows_per_s else None,
        cached_share=batch.cached_tokens / batch.prompt_tokens if batch.prompt_tokens else None,
        width=batch.server.slots if batch.server else 0,
    )


def counts_of(batches: Sequence[Batch]) -> dict[int, dict[str, int]]:
    """Rows by state of several batches, in one query."""
    counts = {batch.pk: dict.fromkeys(ItemStatus.values, 0) for batch in batches}
    grouped = (
        Item.objects.filter(batch__in=counts)
        .values_list("batch", "status")
        .annotate(rows=Count("pk"))
        .order_by()
    )
    for batch_id, status, rows in grouped:
        counts[batch_id][status] = rows
    return counts


def _rates(batch: Batch, finished: int) -> tuple[float | None, float | None]:
    """Rows and written tokens per second."""
    if batch.status == BatchStatus.RUNNING:
        now = timezone.now()
        recent = Item.objects.filter(batch=batch, finished__gte=now - RATE_WINDOW).aggregate(
            rows=Count("pk"), tokens=Sum("completion_tokens"), first=Min("finished")
        )
        seconds = (now - recent["first"]).total_seconds() if recent["first"] else 0.0
        if recent["rows"] > 1 and seconds > 1:
            return (recent["rows"] - 1) / seconds, recent["tokens"] / seconds
    if not finished or batch.worked_s <= 0:
        return None, None
    return finished / batch.worked_s, batch.completion_tokens / batch.worked_s


def servers_to_wake() -> list[int]:
    """Servers with something to do whose pump is gone, if there ever was one."""
    _fail_without_server()
    live = PumpLease.objects.filter(server=OuterRef("server"), until__gte=timezone.now())
    orphaned = Item.objects.filter(batch=OuterRef("pk"), status=ItemStatus.RUNNING)
    waiting = Batch.objects.filter(~Exists(live), server__isnull=False).filter(
        Q(status__in=ACTIVE) | Exists(orphaned)
    )
    return sorted(set(waiting.values_list("server_id", flat=True)))


def _fail_without_server() -> None:
    Batch.objects.filter(server=None, status__in=ACTIVE).update(
        status=BatchStatus.FAILED,
        reason="Its model server was removed. Start a new job with another one.",
    )
