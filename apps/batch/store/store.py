"""What a pump reads from and writes into the database. Every write is behind the lease's fence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import CharField, Exists, F, OuterRef, Q
from django.db.models.functions import MD5
from django.utils import timezone

from apps.batch.handlers import Outcome, Verdict, Withdrawal
from apps.batch.models import ACTIVE, OPEN, Batch, BatchStatus, Item, ItemStatus, ThroughputHistory
from apps.batch.pump import policies
from apps.batch.pump.throughput import Point, added
from apps.batch.store import statements
from apps.batch.store.leases import Lease, fence
from apps.core.text.storable import to_storable
from apps.llm.events import Usage
from apps.servers.models import Server

MAX_ATTEMPTS = 3
TRIAL_DAYS = timedelta(days=7)
RECOVERED = "The worker ended while this row was running. The row starts again."


@dataclass(frozen=True, slots=True)
class Row:
    """A pending row as it was read."""

    pk: int
    batch_id: int
    index: int
    attempts: int
    input: Any


@dataclass(frozen=True, slots=True)
class Started:
    """A row goes to the server now. Counts an attempt, so that a row that kills is noticed."""

    row: Row
    model: str


@dataclass(frozen=True, slots=True)
class Finished:
    row: Row
    outcome: Outcome
    active_seconds: float


@dataclass(frozen=True, slots=True)
class PutBack:
    """The row goes back to pending: for later, or because it was not the row's fault."""

    row: Row
    reason: str = ""
    code: str = ""
    wait_s: float = 0.0
    counts: bool = False
    """Whether the attempt counts; the last one that does makes the row failed."""
    permanent: bool = False
    """Trying again would change nothing: failed at once."""
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0))


Entry = Started | Finished | PutBack


def recover(lease: Lease) -> int:
    """Rows that a dead pump left running are pending again. Returns how many."""
    with fence(lease):
        left = Item.objects.filter(
            batch__server_id=lease.server_id, status=ItemStatus.RUNNING, token__lt=lease.token
        )
        # Updates through a join are a subquery over all items in some databases: by keys instead.
        keys = dict(left.values_list("pk", "attempts"))
        dead = [pk for pk, attempts in keys.items() if attempts >= MAX_ATTEMPTS]
        Item.objects.filter(pk__in=dead).update(
            status=ItemStatus.FAILED,
            code="worker_died",
            reason=f"The worker stopped {MAX_ATTEMPTS} times while running this row.",
            finished=timezone.now(),
        )
        Item.objects.filter(pk__in=keys.keys() - set(dead)).update(
            status=ItemStatus.PENDING, reason=RECOVERED
        )
        # What an earlier pump said they wait for: this one says it again where it is still so.
        note_all(lease.server_id, "")
    return len(keys)


def note_all(server_id: int, reason: str) -> None:
    """Says at all active batches of a server why they wait; an empty reason takes that back."""
    reason = to_storable(reason)
    batches = Batch.objects.filter(server_id=server_id, status__in=ACTIVE)
    batches.exclude(reason=reason).update(reason=reason)


def active_batches(server_id: int) -> list[tuple[Batch, str]]:
    """Each with a hash of its spec, which is as large as its values and is read when it is used."""
    batches = Batch.objects.filter(server_id=server_id, status__in=ACTIVE).order_by("pk")
    hashed = batches.defer("spec").annotate(hashed=MD5("spec", output_field=CharField()))
    return [(batch, batch.hashed) for batch in hashed]


def spec_of(batch_id: int) -> dict[str, Any]:
    spec: dict[str, Any] = Batch.objects.values_list("spec", flat=True).get(pk=batch_id)
    return spec


def status_of(batch_ids: Sequence[int]) -> dict[int, str]:
    """States by batch; a deleted one is missing."""
    return dict(Batch.objects.filter(pk__in=batch_ids).values_list("pk", "status"))


def tend(lease: Lease) -> list[int]:
    """Refill, yield, budget: what is decided for a whole job, not for a row.

    Returns the batches that were given new rows.
    """
    with fence(lease):
        return policies.tend(lease.server_id)


def finish_batches(lease: Lease, batch_ids: Sequence[int]) -> list[int]:
    """Those without a pending or running row are done. Returns the batches that got new rows."""
    still_open = Item.objects.filter(batch=OuterRef("pk"), status__in=OPEN)
    with fence(lease):
        refilled = policies.tend(lease.server_id)  # else one that has to refill would be done
        over = Batch.objects.filter(pk__in=batch_ids, status__in=ACTIVE).filter(~Exists(still_open))
        for batch_id in list(over.values_list("pk", flat=True)):
            status, reason = _ending(batch_id)
            Batch.objects.filter(pk=batch_id, status__in=ACTIVE).update(
                status=status, reason=reason, finished=timezone.now()
            )
    return refilled


def _ending(batch_id: int) -> tuple[BatchStatus, str]:
    """A job none of whose rows came through has failed; one without an accepted row says so."""
    items = Item.objects.filter(batch_id=batch_id)
    if items.filter(status=ItemStatus.ACCEPTED).exists() or not items.exists():
        return BatchStatus.DONE, ""
    if items.filter(status=ItemStatus.REJECTED).exists():
        return BatchStatus.DONE, "No row was accepted. The reasons are below."
    return BatchStatus.FAILED, "All rows failed. The reasons are below."


def pending(batch_id: int, *, limit: int, skip: frozenset[int]) -> list[Row]:
    """The next rows whose time has come, in order, without the few dozen in `skip`."""
    due = Q(not_before=None) | Q(not_before__lte=timezone.now())
    found = (
        Item.objects.filter(due, batch_id=batch_id, status=ItemStatus.PENDING, code="")
        .order_by("index")
        .values_list("pk", "batch_id", "index", "attempts", "input")[: limit + len(skip)]
    )
    return [Row(*values) for values in found if values[0] not in skip][:limit]


def note(lease: Lease, reason: str, batch_ids: Sequence[int] | None = None) -> None:
    """Says at batches why they wait, by default at every active one of the server.

    An empty reason takes that back.
    """
    with fence(lease):
        if batch_ids is None:
            return note_all(lease.server_id, reason)
        reason = to_storable(reason)
        batches = Batch.objects.filter(pk__in=batch_ids, status__in=ACTIVE)
        batches.exclude(reason=reason).update(reason=reason)


def rest(lease: Lease, batch_ids: Sequence[int], *, status: BatchStatus, reason: str) -> None:
    """Takes batches out of the work, with the reason on the page."""
    with fence(lease):
        Batch.objects.filter(pk__in=batch_ids, status__in=ACTIVE).update(
            status=status, reason=to_storable(reason)
        )


def withdraw(lease: Lease, rows: Sequence[Withdrawal]) -> None:
    """Rejects accepted rows; what a person has looked at stays."""
    with fence(lease):
        for row in rows:
            Item.objects.filter(pk=row.item_id, status=ItemStatus.ACCEPTED, reviewed=False).update(
                status=ItemStatus.REJECTED, code=row.code, reason=to_storable(row.reason)
            )


def write(lease: Lease, entries: Sequence[Entry]) -> None:
    """One transaction for what happened to a few rows.

    Raises:
        LeaseLost: nothing was written.
    """
    with fence(lease) as now:
        _start(lease, [entry for entry in entries if isinstance(entry, Started)], now)
        _finish(lease, [entry for entry in entries if isinstance(entry, Finished)], now)
        for entry in entries:
            if isinstance(entry, PutBack):
                _put_back(lease, entry, now)


def _start(lease: Lease, entries: list[Started], now: datetime) -> None:
    if not entries:
        return
    statements.run_each(statements.START, [(lease.token, entry.row.pk) for entry in entries])
    for batch_id, model in {entry.row.batch_id: entry.model for entry in entries}.items():
        statements.run(statements.BEGIN, (model, statements.moment(now), batch_id))


def _finish(lease: Lease, entries: list[Finished], now: datetime) -> None:
    by_batch: dict[int, list[Finished]] = {}
    for entry in entries:
        by_batch.setdefault(entry.row.batch_id, []).append(entry)
    for batch_id, of_batch in by_batch.items():
        prints = [entry.outcome.fingerprint for entry in of_batch]
        twins = statements.twins(batch_id, [one for one in prints if one is not None])
        written = [entry for entry in of_batch if _finish_row(lease, entry, now, twins)]
        usages = [entry.outcome.usage for entry in written]
        if written:
            sums = (
                sum(entry.active_seconds for entry in written),
                sum(_countable(usage.prompt_tokens) for usage in usages),
                sum(_countable(usage.cached_tokens) for usage in usages),
                sum(_countable(usage.completion_tokens) for usage in usages),
                sum(e.outcome.tokens for e in written if not e.outcome.is_counted),
            )
            statements.run(statements.COUNT, (*sums, batch_id))


def _finish_row(lease: Lease, entry: Finished, now: datetime, twins: dict[str, int]) -> bool:
    """Whether it was still this lease's to finish.

    Args:
        twins: index by fingerprint of the batch's accepted rows, as far as it may matter here; an
            accepted row is added.
    """
    outcome, usage = entry.outcome, entry.outcome.usage
    verdict, code, reason = outcome.verdict, outcome.code, outcome.reason
    fingerprint = outcome.fingerprint if verdict is Verdict.ACCEPTED else None
    if fingerprint is not None and fingerprint in twins:
        verdict, code = Verdict.REJECTED, "duplicate"
        reason, fingerprint = f"Duplicate of row {twins[fingerprint] + 1}.", None
    written = statements.run(
        statements.FINISH,
        (
            *(verdict.value, code, to_storable(reason), statements.stored(outcome.output)),
            *(to_storable(outcome.prompt), to_storable(outcome.raw), fingerprint),
            *(outcome.minhash or None, statements.moment(now)),
            *map(_countable, (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)),
            *(entry.row.pk, lease.token),
        ),
    )
    if written and fingerprint is not None:
        twins[fingerprint] = entry.row.index
    return bool(written)


def _put_back(lease: Lease, entry: PutBack, now: datetime) -> None:
    mine = Item.objects.filter(pk=entry.row.pk, status=ItemStatus.RUNNING, token=lease.token)
    if entry.permanent or (entry.counts and entry.row.attempts + 1 >= MAX_ATTEMPTS):
        tries = "" if entry.permanent else f" (tried {entry.row.attempts + 1} times)"
        mine.update(
            status=ItemStatus.FAILED,
            code=entry.code,
            reason=to_storable(f"{entry.reason}{tries}"),
            finished=now,
        )
        return
    mine.update(
        status=ItemStatus.PENDING,
        reason=to_storable(entry.reason),
        attempts=F("attempts") - (0 if entry.counts else 1),
        not_before=now + timedelta(seconds=entry.wait_s) if entry.wait_s else None,
    )


def keep_course(lease: Lease, points: Mapping[int, Point]) -> None:
    """One more point of each job's course."""
    with fence(lease):
        there = set(Batch.objects.filter(pk__in=points).values_list("pk", flat=True))
        for batch_id in sorted(there):
            course, _ = ThroughputHistory.objects.get_or_create(batch_id=batch_id)
            course.points = added(course.points, points[batch_id])
            course.save(update_fields=["points"])


def keep_trial(lease: Lease, batch_id: int, trial: dict[str, Any]) -> None:
    with fence(lease):
        if Batch.objects.filter(pk=batch_id).exists():
            values = {"probe": trial, "probed_at": timezone.now()}
            ThroughputHistory.objects.update_or_create(batch_id=batch_id, defaults=values)


def best_width(server_id: int, model: str, slots: int) -> int | None:
    """What the last trial with this model and as many slots found; None where it is too old."""
    last = ThroughputHistory.objects.filter(
        batch__server_id=server_id,
        probed_at__gte=timezone.now() - TRIAL_DAYS,
        probe__model=model,
        probe__slots=slots,
    ).order_by("-probed_at")
    trial = last.values_list("probe", flat=True).first()
    return None if trial is None else int(trial["best"])


def server_of(server_id: int) -> Server | None:
    return Server.objects.filter(pk=server_id).first()


def has_work(server_id: int) -> bool:
    return Batch.objects.filter(server_id=server_id, status__in=ACTIVE).exists()


def has_orphans(server_id: int) -> bool:
    """Rows left running in a job that was paused or cancelled when its pump died."""
    return Item.objects.filter(
        batch__in=Batch.objects.filter(server_id=server_id).exclude(status__in=ACTIVE),
        status=ItemStatus.RUNNING,
    ).exists()


def _countable(tokens: int) -> int:
    """A server may say anything; a column holds 31 bits."""
    return min(max(0, tokens), 2**31 - 1)
