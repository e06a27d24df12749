"""Start, cancel and store sweeps, and use what they found."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.servers.models import Server
from apps.servers.services import record_best_width
from apps.tuning.errors import SweepError
from apps.tuning.models import MOST_RUNS, SweepRun
from apps.tuning.runs.task_kind import SWEEP
from apps.tuning.sweep.results import SweepResults
from apps.work import services as work

CANCELLED = "Cancelled."
LOST = "The worker ended during this. See the worker log."


@transaction.atomic
def start_sweep(server: Server, model: str, minutes: float, owner: User | None) -> SweepRun:
    """Queue a sweep.

    Raises:
        SweepError: one runs on this server already.
    """
    run = SweepRun.objects.create(server=server, model=model, minutes=minutes, owner=owner)
    if work.enqueue(SWEEP, server.pk, owner=owner, options={"run": run.pk}) is None:
        run.delete()
        raise SweepError(f"“{server.name}” is being measured already.")
    delete_old_runs(server)
    return run


def cancel_sweep(server: Server) -> None:
    """Cancel the sweep of a server: at once if no worker has begun, else within a second."""
    task = work.find(SWEEP, server.pk)
    if task is not None and work.cancel(task):
        end_run(task.options["run"], CANCELLED)


def active_run(server: Server) -> SweepRun | None:
    """Return the run that is queued or running."""
    task = work.find(SWEEP, server.pk)
    if task is None or not task.is_active:
        return None
    return SweepRun.objects.filter(pk=task.options["run"]).first()


def end_lost_runs(server: Server) -> None:
    """Mark runs whose task has ended without them."""
    active = active_run(server)
    lost = SweepRun.objects.filter(server=server, ended=None)
    if active is not None:
        lost = lost.exclude(pk=active.pk)
    lost.update(ended=timezone.now(), error=LOST)


def end_run(pk: int, error: str = "", results: SweepResults | None = None) -> None:
    """Store how a run ended; its results so far stay."""
    values = {} if results is None else {"stored_results": results.to_json()}
    SweepRun.objects.filter(pk=pk).update(ended=timezone.now(), error=error, doing="", **values)


def store_results(run: SweepRun, results: SweepResults) -> None:
    """End a run with its results, and have jobs use the number of rows that it found."""
    end_run(run.pk, results=results)
    use_best_width(run.server, results)
    delete_old_runs(run.server)


def use_best_width(server: Server, results: SweepResults) -> None:
    """Make the best number of rows the default of jobs, where the server reports its slots."""
    is_told = not server.measures_slots(results.model)
    if results.best_width is not None and results.slots > 1 and is_told:
        record_best_width(server, results.model, results.best_width, results.mixed_width)


def delete_old_runs(server: Server) -> None:
    """Keep the latest runs of a server."""
    kept = SweepRun.objects.filter(server=server).values_list("pk", flat=True)[:MOST_RUNS]
    SweepRun.objects.filter(server=server).exclude(pk__in=list(kept)).delete()
