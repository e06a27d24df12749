"""Start and store examinations of servers."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.servers.models import Server
from apps.tuning.doctor.examination import Examination, to_json
from apps.tuning.errors import DoctorError
from apps.tuning.models import MOST_RUNS, DoctorRun
from apps.tuning.runs.services import LOST
from apps.tuning.runs.task_kind import DOCTOR
from apps.work import services as work
from apps.work.models import TaskState


@transaction.atomic
def start_examination(server: Server, owner: User | None) -> DoctorRun:
    """Queue an examination.

    Raises:
        DoctorError: one runs on this server already.
    """
    run = DoctorRun.objects.create(server=server, owner=owner)
    if work.enqueue(DOCTOR, server.pk, owner=owner, options={"run": run.pk}) is None:
        run.delete()
        raise DoctorError(f"“{server.name}” is being examined already.")
    delete_old_runs(server)
    return run


def active_examination(server: Server) -> DoctorRun | None:
    """Return the run that is queued or running."""
    task = work.find(DOCTOR, server.pk)
    if task is None or not task.is_active:
        return None
    return DoctorRun.objects.filter(pk=task.options["run"]).first()


def waits_for_worker(server: Server) -> bool:
    """Return whether an examination is queued and no worker has begun it."""
    task = work.find(DOCTOR, server.pk)
    return task is not None and task.state == TaskState.QUEUED


def end_lost_runs(server: Server) -> None:
    """Mark runs whose task has ended without them."""
    active = active_examination(server)
    lost = DoctorRun.objects.filter(server=server, ended=None)
    if active is not None:
        lost = lost.exclude(pk=active.pk)
    lost.update(ended=timezone.now(), error=LOST)


def end_run(pk: int, error: str = "", found: Sequence[Examination] = ()) -> None:
    """Store what was found, or why nothing was."""
    DoctorRun.objects.filter(pk=pk).update(
        ended=timezone.now(), error=error, stored_examinations=to_json(found)
    )


def delete_old_runs(server: Server) -> None:
    """Keep the latest runs of a server."""
    kept = DoctorRun.objects.filter(server=server).values_list("pk", flat=True)[:MOST_RUNS]
    DoctorRun.objects.filter(server=server).exclude(pk__in=list(kept)).delete()
