"""Making jobs, and what people do with them. A job's pump is woken by `apps.batch.tasks.wake`.

What is decided for a whole job while it runs (refill, yield, budget) is in `tending`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Count, Exists, F, Min, OuterRef, Q, QuerySet, Sum, When
from django.utils import timezone
from redis.exceptions import RedisError

from apps.batch import presence
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
from apps.batch.pump.policies import resume_budgets, tend
from apps.batch.store import leases
from apps.batch.store.items import INSERT_ROWS, add_empty_items, add_items, next_index
from apps.servers.models import Kind, Server

__all__ = ["tend"]  # the pump's, from the one door of this room

RATE_WINDOW = timedelta(seconds=30)
NO_WORKER = (
    "Waiting for a worker: no process runs jobs now. An admin starts one with "
    "“manage.py run_pumps”."
)


class WrongState(Exception):
    """The job is not in a state in which this can be done. The message says which."""


@transaction.atomic
def create_batch(
    *,
    owner: User,
    server: Server,
    handler: str,
    spec: dict[str, Any],
    inputs: Iterable[Any] | int,
    name: str = "",
    model: str = "",
    weight: int = 1,
    refill: bool = False,
    tries: int = 5,
    width: int | None = None,
    daily_tokens: int | None = None,
) -> Batch:
    """A queued job with one pending row per input, all or nothing. 100,000 rows take seconds.

    Args:
        inputs: one for each row; or how many rows, where their index says all there is to know.
        refill: rows that are rejected or fail are replaced, until as many are accepted as there
            are inputs. A replacement's input is `{"for": index of the row it stands for}`.
        tries: how many rows may be made for each one wanted.
        width: most rows in flight; None for every slot.
        daily_tokens: pause for the day after so many tokens.
    """
    batch = Batch.objects.create(
        owner=owner,
        name=name[:200],
        server=server,
        model=model,
        handler=handler,
        spec=spec,
        weight=weight,
        tries=tries,
        width=width,
        daily_tokens=daily_tokens,
    )
    if isinstance(inputs, int):
        add_empty_items(batch, inputs)
        batch.total = inputs
    else:
        batch.total = add_items(batch, inputs)
    batch.goal = batch.total if refill else None
    batch.save(update_fields=["total", "goal"])
    return batch


def pause(batch: Batch) -> None:
    """Rows in flight finish, no new one starts."""
    _move(batch, ACTIVE, BatchStatus.PAUSED, "Paused by you.")


def resume(batch: Batch) -> None:
    """Goes on; a budget that was used up and a yield that was too low are forgiven."""
    _move(batch, (BatchStatus.PAUSED, BatchStatus.FAILED), BatchStatus.QUEUED, "")
    begin_anew(batch)


def begin_anew(batch: Batch) -> None:
    """The yield and today's budget are counted from now on.

    A job that rests until its budget of tomorrow still rests until then.
    """
    Batch.objects.filter(pk=batch.pk).update(
        yield_counted_since=timezone.now(),
        rows_before_resume=F("total"),
        day=None,
        resumes_on=Case(When(status=BatchStatus.PAUSED, then=F("resumes_on"))),
    )


def add_rows(batch: Batch, rows: int) -> None:
    """So many rows more, also of a job that is done.

    A few thousand in each transaction: the pump and everybody else write in between.

    Raises:
        WrongState: it was cancelled.
    """
    for done in range(0, rows, INSERT_ROWS):
        _add_rows(batch.pk, min(INSERT_ROWS, rows - done))
    batch.refresh_from_db()


@transaction.atomic
def _add_rows(batch_id: int, rows: int) -> None:
    batch = Batch.objects.select_for_update().get(pk=batch_id)
    if batch.status == BatchStatus.CANCELLED:
        raise WrongState("This job was cancelled. Start a new one.")
    # The next places after those that were asked for: quotas go on where they ended.
    inputs = [{"for": batch.wanted + at} for at in range(rows)]
    first = next_index(batch)
    add_items(batch, inputs, first=first)
    batch.total = first + rows
    batch.goal = None if batch.goal is None else batch.goal + rows
    if batch.status in (BatchStatus.DONE, BatchStatus.FAILED):
        batch.status, batch.reason, batch.finished = BatchStatus.QUEUED, "", None
    batch.save(update_fields=["total", "goal", "status", "reason", "finished"])
    begin_anew(batch)


def delete(batch: Batch) -> None:
    """With all its rows. What is in flight is closed within a second; nothing can be undone.

    Rows go some thousand at a time: everybody else writes in between. Should it be broken off,
    what is left is a cancelled job that can be deleted.
    """
    Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.CANCELLED)
    for keys in _keys_of(Item.objects.filter(batch=batch)):
        Item.objects.filter(pk__in=keys).delete()
    batch.delete()


def _keys_of(items: QuerySet[Item]) -> Iterator[list[int]]:
    """Some thousand at a time, as long as there are any: each is a transaction of its own."""
    while keys := list(items.order_by("pk").values_list("pk", flat=True)[:INSERT_ROWS]):
        yield keys


@transaction.atomic
def restore(item: Item) -> None:
    """A rejected row is accepted after all; its replacement is taken back if it has not begun.

    Raises:
        WrongState: it is not rejected.
    """
    # A refill looks at the same row: one of the two is first.
    Batch.objects.select_for_update().get(pk=item.batch_id)
    restored = Item.objects.filter(pk=item.pk, status=ItemStatus.REJECTED).update(
        status=ItemStatus.ACCEPTED, code="", reason="", reviewed=True, finished=timezone.now()
    )
    item.refresh_from_db()
    if not restored:
        raise WrongState(f"The row is {item.status}. Only rejected rows can be restored.")
    take_back_spares(item.batch_id, [item])
    item.refresh_from_db()


@transaction.atomic
def take_up(item: Item, given: dict[str, Any], reason: str) -> None:
    """A rejected row is pending again, and its replacement taken back if it has not begun.

    Args:
        given: its new input, with `for` as it was.

    Raises:
        WrongState: it is not rejected, or its job was cancelled.
    """
    batch = Batch.objects.select_for_update().get(pk=item.batch_id)
    if batch.status == BatchStatus.CANCELLED:
        raise WrongState("This job was cancelled. The rest of the row cannot be generated.")
    taken = Item.objects.filter(pk=item.pk, status=ItemStatus.REJECTED).update(
        status=ItemStatus.PENDING,
        code="",
        reason=reason,
        input=given,
        reviewed=True,
        attempts=0,
        not_before=None,
        finished=None,
        minhash=None,
    )
    item.refresh_from_db()
    if not taken:
        raise WrongState(f"The row is {item.status}. Only rejected rows can be restored.")
    take_back_spares(item.batch_id, [item])
    Batch.objects.filter(pk=batch.pk, status=BatchStatus.DONE).update(
        status=BatchStatus.QUEUED, reason="", finished=None
    )
    item.refresh_from_db()


def take_back_spares(batch_id: int, items: Iterable[Item]) -> None:
    """Of rows that are accepted after all: the replacements that have not begun are not needed."""
    wanted = {item.original_index: item.pk for item in items if item.replaced}
    for part in _parts(sorted(wanted)):
        # A row that begins at this moment is held by its pump, and stays.
        spares = Item.objects.select_for_update(skip_locked=True).filter(
            batch_id=batch_id,
            status=ItemStatus.PENDING,
            input__in=[{"for": place} for place in part],
            prompt="",
        )
        found = {item.original_index: item.pk for item in spares.only("pk", "index", "input")}
        Item.objects.filter(pk__in=found.values(), status=ItemStatus.PENDING).delete()
        # Should it go again, it needs a replacement again.
        Item.objects.filter(pk__in=[wanted[place] for place in found]).update(replaced=False)


def make_up(batch: Batch) -> bool:
    """A job that refills and was done goes on, for rows that were taken out afterwards.

    Returns whether it does. Those rows say nothing of what it yields from now on.
    """
    now = timezone.now()
    mine = Batch.objects.filter(pk=batch.pk, goal__isnull=False)
    mine.update(yield_counted_since=now)
    goes_on = mine.filter(status=BatchStatus.DONE).update(
        status=BatchStatus.QUEUED, reason="", finished=None, rows_before_resume=F("total")
    )
    return bool(goes_on)


def _parts(keys: Sequence[int], size: int = 500) -> Iterable[Sequence[int]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def reject(item: Item, reason: str = "Rejected by you.") -> None:
    """An accepted row is taken out by a person; a job that refills and is at work makes another.

    Raises:
        WrongState: it is not accepted.
    """
    rejected = Item.objects.filter(pk=item.pk, status=ItemStatus.ACCEPTED).update(
        status=ItemStatus.REJECTED, code="by_hand", reason=reason, fingerprint=None, reviewed=True
    )
    if not rejected:
        raise WrongState(f"The row is {item.status}. Only accepted rows can be rejected.")
    item.refresh_from_db()


def cancel(batch: Batch) -> None:
    """For good. Requests in flight are closed within a second; what is there stays."""
    _move(batch, (*ACTIVE, BatchStatus.PAUSED, BatchStatus.FAILED), BatchStatus.CANCELLED, "")
    Batch.objects.filter(pk=batch.pk).update(finished=timezone.now())


def retry_failed(batch: Batch) -> int:
    """Failed rows are pending again, with all their attempts. Returns how many."""
    if batch.status == BatchStatus.CANCELLED:
        raise WrongState("This job was cancelled. Start a new one.")
    # One that was replaced is no gap any more.
    failed = Item.objects.filter(batch=batch, status=ItemStatus.FAILED, replaced=False)
    count = 0
    for keys in _keys_of(failed):
        count += failed.filter(pk__in=keys).update(
            status=ItemStatus.PENDING,
            code="",
            reason="",
            attempts=0,
            not_before=None,
            finished=None,
        )
    if not count:
        raise WrongState("No failed rows.")
    Batch.objects.filter(pk=batch.pk, status__in=(BatchStatus.DONE, BatchStatus.FAILED)).update(
        status=BatchStatus.QUEUED, reason="", finished=None
    )
    begin_anew(batch)
    batch.refresh_from_db()
    return count


def _move(batch: Batch, states: Iterable[str], to: BatchStatus, reason: str) -> None:
    """A conditional update: two people, or a person and the pump, cannot both be right."""
    moved = Batch.objects.filter(pk=batch.pk, status__in=tuple(states)).update(
        status=to, reason=reason
    )
    batch.refresh_from_db(fields=["status", "reason"])
    if not moved:
        raise WrongState(f"The job is {batch.status}. This action is not available.")


@dataclass(frozen=True)
class Progress:
    """How a job stands. Rates are of the last seconds while it runs, of the whole afterwards."""

    counts: dict[str, int]
    total: int
    goal: int | None
    reasons: list[tuple[str, str, int]]
    """(status, code, rows) of what was rejected or failed, most frequent first."""
    rows_per_s: float | None
    tokens_per_s: float | None
    eta_s: float | None
    cached_share: float | None
    """None where the server does not tell."""
    width: int

    @property
    def finished(self) -> int:
        return sum(self.counts[status] for status in FINISHED)

    @property
    def wanted(self) -> int:
        return self.total if self.goal is None else self.goal

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
        goal=batch.goal,
        reasons=[(status, code, rows) for status, code, rows in grouped if status in bad],
        rows_per_s=rows_per_s,
        tokens_per_s=tokens_per_s,
        eta_s=_eta(batch, counts, left, rows_per_s) if running else None,
        cached_share=(
            batch.cached_tokens / batch.prompt_tokens
            if batch.prompt_tokens and tells_cached(batch)
            else None
        ),
        width=min(batch.width or 10_000, batch.server.width(batch.model)) if batch.server else 0,
    )


def tells_cached(batch: Batch) -> bool:
    """Whether its server says what of a prompt came from the cache: not all do, and send no 0."""
    llama = (Kind.LLAMA_SERVER, Kind.ROUTER, Kind.LLAMA_SWAP)
    told = batch.server is not None and batch.server.kind in llama
    return told or batch.cached_tokens > 0


def _eta(batch: Batch, counts: dict[str, int], left: int, rows_per_s: float | None) -> float | None:
    """Seconds to the end; with a goal, at the share of rows accepted so far."""
    if not rows_per_s:
        return None
    if batch.goal is None:
        return left / rows_per_s
    accepted = counts[ItemStatus.ACCEPTED]
    finished = sum(counts[status] for status in FINISHED)
    if not accepted:
        return None
    return max(0, batch.goal - accepted) / (rows_per_s * accepted / finished)


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
    if not finished or batch.active_seconds <= 0:
        return None, None
    return finished / batch.active_seconds, batch.completion_tokens / batch.active_seconds


def servers_to_wake() -> list[int]:
    """Servers with something to do and no pump at work, the longest without one first."""
    _fail_without_server()
    resume_budgets()
    live = leases.held()
    orphaned = Item.objects.filter(batch=OuterRef("pk"), status=ItemStatus.RUNNING)
    waiting = Batch.objects.filter(server__isnull=False).exclude(server__in=live)
    waiting = waiting.filter(Q(status__in=ACTIVE) | Exists(orphaned))
    beats = dict(PumpLease.objects.values_list("server_id", "heartbeat"))
    never = datetime.min.replace(tzinfo=UTC)
    found = set(waiting.values_list("server_id", flat=True))
    return sorted(found, key=lambda server_id: (beats.get(server_id, never), server_id))


def reason_of(batch: Batch) -> str:
    """Why a job waits, rests or failed, as a sentence; empty where nothing is in its way."""
    if batch.reason or batch.status != BatchStatus.QUEUED:
        return batch.reason
    try:
        if not presence.anybody():
            return NO_WORKER
    except (RedisError, OSError):
        return "Waiting for Redis: it does not answer."
    return "Waiting for a free worker."


def _fail_without_server() -> None:
    Batch.objects.filter(server=None, status__in=ACTIVE).update(
        status=BatchStatus.FAILED,
        reason="Its model server was removed. Start a new job with another one.",
    )
    # What was in flight then: no pump can put these rows back any more.
    Item.objects.filter(batch__server=None, status=ItemStatus.RUNNING).update(
        status=ItemStatus.PENDING, reason="The model server was removed."
    )
