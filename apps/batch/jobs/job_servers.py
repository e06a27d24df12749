"""Which servers work on a job: its own, those with the same model, the fallback.

The pump of the job's own server enters the others, behind the fence of its lease, so a server that
is added while the job runs takes part in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from apps.batch.models import ACTIVE, Batch, BatchServer, BatchStatus, Item
from apps.batch.store.leases import Lease, fence
from apps.servers.models import Server, Use
from apps.servers.services import Target, choose_target, fallback_target, same_model_targets

STANDBY = "standby"
RATE_WINDOW = timedelta(seconds=30)


def assign_servers(lease: Lease) -> list[int]:
    """Enter the servers of the active jobs of a pump's server. Returns those to wake."""
    batches = Batch.objects.filter(server=lease.server_id, status__in=ACTIVE)
    batches = batches.filter(Q(all_servers=True) | Q(may_fall_back=True)).defer("spec")
    found = list(batches.prefetch_related("servers"))
    if not found:
        return []
    server = Server.objects.get(pk=lease.server_id)
    added: set[int] = set()
    for batch in found:
        wanted = _wanted(batch, server)
        if {entry.server_id: entry.is_fallback for entry in batch.servers.all()} != {
            entry.server_id: entry.is_fallback for entry in wanted
        }:
            with fence(lease):
                added.update(_enter(batch, wanted))
    return sorted(added - {lease.server_id})


def _wanted(batch: Batch, server: Server) -> list[BatchServer]:
    """The servers of a batch, its own first; none where it has only one."""
    own = choose_target(server, batch.model)
    others = same_model_targets(own) if batch.all_servers else []
    found = [BatchServer(batch=batch, server=other.server, model=other.model) for other in others]
    # A server that works on it stays: while it is away nothing is known of its models.
    known = {entry.server_id for entry in found}
    found += [
        entry
        for entry in batch.servers.all()
        if entry.server_id not in {*known, server.pk} and not entry.is_fallback
    ]
    known = {entry.server_id for entry in found}
    fallback = fallback_target(Use.GENERATION, server) if batch.may_fall_back else None
    if fallback is not None and fallback.server.pk not in known:
        found.append(
            BatchServer(batch=batch, server=fallback.server, model=fallback.model, is_fallback=True)
        )
    return [BatchServer(batch=batch, server=server, model=own.model), *found] if found else []


def _enter(batch: Batch, wanted: Sequence[BatchServer]) -> list[int]:
    """Store the servers of a batch. Returns the servers that are new."""
    entries = BatchServer.objects.filter(batch=batch)
    keys = {(entry.server_id, entry.is_fallback) for entry in wanted}
    for entry in entries:
        if (entry.server_id, entry.is_fallback) not in keys:
            entry.delete()
    kept = set(entries.values_list("server_id", flat=True))
    new = [entry for entry in wanted if entry.server_id not in kept]
    BatchServer.objects.bulk_create(new)
    if wanted and not batch.model:
        Batch.objects.filter(pk=batch.pk, model="").update(model=wanted[0].model)
    # From now on each server has a reason of its own.
    Batch.objects.filter(pk=batch.pk, status__in=ACTIVE).exclude(reason="").update(reason="")
    return [entry.server_id for entry in new]


def hand_over_jobs() -> None:
    """Give jobs whose own server was removed to another one that works on them."""
    orphaned = Batch.objects.filter(server=None, servers__isnull=False, status__in=ACTIVE)
    for batch in orphaned.defer("spec").distinct():
        entry = batch.servers.order_by("is_fallback", "pk")[0]
        batch.server_id, batch.model = entry.server_id, entry.model or batch.model
        batch.save(update_fields=["server", "model"])
        batch.servers.filter(pk=entry.pk).update(is_fallback=False)


@dataclass(frozen=True, slots=True)
class JobServer:
    """One of the servers that work on a job."""

    server: Server
    is_fallback: bool
    state: str
    """A `BatchServer.State`, or "standby" of a fallback that is not needed."""
    reason: str
    """Why it does not work, as a sentence."""
    width: int
    rows: int
    """Finished rows."""
    rows_per_s: float | None
    """In the last seconds of a running job."""

    @property
    def label(self) -> str:
        return "Standby" if self.state == STANDBY else BatchServer.State(self.state).label


def servers_of(batch: Batch) -> list[JobServer]:
    """Return the servers that work on a job; [] if it has only one."""
    entries = list(batch.servers.select_related("server"))
    if not entries:
        return []
    away = [entry.server_id for entry in entries if entry.state == BatchServer.State.AWAY]
    is_away = batch.server_id in away
    finished = Item.objects.filter(batch=batch, finished__isnull=False)
    rows = _by_server(finished)
    recent: dict[int, int] = {}
    if batch.status == BatchStatus.RUNNING:
        recent = _by_server(finished.filter(finished__gte=timezone.now() - RATE_WINDOW))
    running = (timezone.now() - batch.started) if batch.started else RATE_WINDOW
    seconds = min(RATE_WINDOW, running).total_seconds()
    return [
        JobServer(
            entry.server,
            entry.is_fallback,
            STANDBY if entry.is_fallback and not is_away else entry.state,
            entry.reason,
            entry.server.slots_of(entry.model),
            rows.get(entry.server_id, 0),
            recent.get(entry.server_id, 0) / seconds if recent and seconds > 1 else None,
        )
        for entry in entries
    ]


def servers_wait_reason(batch: Batch) -> str:
    """Return why none of a job's servers works on it, or which one stands in for its own."""
    entries = list(batch.servers.select_related("server"))
    own = next((entry for entry in entries if entry.server_id == batch.server_id), None)
    if own is None or own.state != BatchServer.State.AWAY:
        return ""
    working = [entry for entry in entries if entry.state == BatchServer.State.WORKING]
    if not working:
        return own.reason
    if all(entry.is_fallback for entry in working):
        return f"“{own.server}” does not answer. Rows now come from “{working[0].server}”."
    return ""


def _by_server(rows: QuerySet[Item]) -> dict[int, int]:
    counted = rows.values_list("server").annotate(rows=Count("pk")).order_by()
    return {server: count for server, count in counted if server is not None}


def target_of(batch_id: int) -> Target | None:
    """Return a job's own server and its model there; None if the server was removed."""
    batch = Batch.objects.select_related("server").defer("spec").get(pk=batch_id)
    return None if batch.server is None else Target(batch.server, batch.model)
