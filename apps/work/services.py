"""Queue, run, cancel and resume durable tasks.

A room registers a handler for each kind of work at start. The handler gets the held task, reads its
subject, and calls `end` in the transaction that writes the outcome.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

from apps.core.schemas.json_types import JsonObject
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.lease import MAX_ATTEMPTS, HeldTask, claim
from apps.work.models import Task, TaskState

__all__ = ["MAX_ATTEMPTS", "HeldTask", "claim"]

log = logging.getLogger(__name__)

# A task that nobody holds is announced again after this long.
WAKE_AFTER = timedelta(seconds=45)
INTERNAL_ERROR = "Something went wrong. Details are in the worker log."

Handler = Callable[[HeldTask], None]
_handlers: dict[str, str] = {}


def register(kind: str, handler: str) -> None:
    """Declare which function does work of this kind.

    Args:
        handler: dotted path of a `Handler`, imported by the worker alone.
    """
    _handlers[kind] = handler


def is_registered(kind: str) -> bool:
    return kind in _handlers


def enqueue(
    kind: str,
    subject: object,
    *,
    owner: User | None = None,
    options: JsonObject | None = None,
    send: bool = True,
    repeat: bool = True,
) -> Task | None:
    """Queue work on a subject, again if it has ended; None if it is queued or running already.

    Args:
        send: announce it to the workers after the commit. False if this process claims it.
        repeat: queue it also if it was done before. One that failed may always be tried again.
    """
    fresh: dict[str, Any] = {
        **{"state": TaskState.QUEUED, "owner": owner, "options": options or {}},
        **{"done": 0, "total": 0, "error": "", "cancel_requested": False, "attempts": 0},
        **{"lease": None, "lease_until": None, "started": None, "finished": None},
    }
    with transaction.atomic(savepoint=False):
        task, is_new = Task.objects.get_or_create(
            kind=kind, subject=str(subject), defaults={"owner": owner, "options": options or {}}
        )
        if not is_new:
            over = [TaskState.FAILED, TaskState.CANCELLED, *([TaskState.DONE] if repeat else [])]
            ended = Task.objects.filter(pk=task.pk, state__in=over)
            if not ended.update(**fresh, enqueued_at=Now()):
                return None
            task.refresh_from_db()
        if send:
            wake(task)
    return task


def start_here(
    kind: str,
    subject: object,
    *,
    owner: User | None = None,
    options: JsonObject | None = None,
    repeat: bool = True,
) -> HeldTask | None:
    """Queue work and claim it for this process; None as `enqueue`. A worker resumes it if we die.

    Call it in the transaction that creates what the work is about.
    """
    task = enqueue(kind, subject, owner=owner, options=options, send=False, repeat=repeat)
    return None if task is None else claim(task.pk)


def wake(task: Task) -> None:
    """Announce a task to the workers once the current transaction has committed."""
    transaction.on_commit(lambda: _send(task.pk))


def _send(task_id: int) -> None:
    from apps.work.tasks import run_task  # it needs this module

    try:
        run_task.delay(task_id)
    except OperationalError:
        # The row is in the database: `sweep` announces it when the broker is back.
        log.exception("Task %s could not be announced. It starts later.", task_id)


def run(task_id: int) -> None:
    """Claim a task and run its handler; do nothing if it has ended or a living worker holds it.

    A handler that returns without ending its task has done it.
    """
    held = claim(task_id)
    if held is None:
        return
    with held:
        try:
            handler: Handler = import_string(_handlers[held.task.kind])
            handler(held)
            _end(held, TaskState.DONE)
        except TaskCancelled:
            _end(held, TaskState.CANCELLED)
        except LeaseLost:
            log.warning("Task %s was taken over, ended or deleted.", held.task)
        except Exception:
            _end(held, TaskState.FAILED, INTERNAL_ERROR)
            raise


def find(kind: str, subject: object) -> Task | None:
    return Task.objects.filter(kind=kind, subject=str(subject)).first()


def list_tasks(kind: str, prefix: str = "") -> list[Task]:
    """Return the tasks of a kind whose subject begins with `prefix`."""
    return list(Task.objects.filter(kind=kind, subject__startswith=prefix))


def run_subject(kind: str, subject: object) -> None:
    """Run the task of a subject, if there is one."""
    task = find(kind, subject)
    if task is not None:
        run(task.pk)


def _end(held: HeldTask, state: TaskState, error: str = "") -> None:
    with suppress(LeaseLost):  # the handler ended it with its subject, or someone else did
        held.end(state, error)


def cancel(task: Task) -> bool:
    """Cancel a task: at once if no worker holds it (True), else at the worker's next check."""
    mine = Task.objects.filter(pk=task.pk)
    if mine.idle().update(state=TaskState.CANCELLED, finished=Now(), lease=None, lease_until=None):
        return True
    mine.active().update(cancel_requested=True)
    return False


def claim_cancelled(task: Task) -> HeldTask | None:
    """Ask for a task to stop, and return it if no worker holds it: the caller then cleans up.

    Else its worker does at its next check, or the next worker if that one dies.
    """
    Task.objects.active().filter(pk=task.pk).update(cancel_requested=True)
    return claim(task.pk)


def discard(kind: str, subjects: Iterable[object]) -> None:
    """Delete the tasks of deleted subjects. A worker on one loses its lease and stops."""
    Task.objects.filter(kind=kind, subject__in=[str(subject) for subject in subjects]).delete()


def forget_failure(kind: str, subject: object) -> None:
    """Delete the task of a subject if it failed: its error is out of date."""
    Task.objects.filter(kind=kind, subject=str(subject), state=TaskState.FAILED).delete()


def wait_reason(task: Task) -> str:
    """Say what a queued task waits for; "" if it does not wait."""
    if task.state != TaskState.QUEUED:
        return ""
    running = Task.objects.active().filter(lease_until__gte=Now()).count()
    if not running:
        return "Waiting for a worker."
    others = "1 other task runs" if running == 1 else f"{running} other tasks run"
    return f"Waiting for a free worker: {others}."


def sweep() -> list[int]:
    """Announce again the tasks that nobody holds: their message was lost or their worker died.

    Message and row may disagree for a moment. The lease decides, so a second message is harmless.
    """
    idle = Task.objects.idle().filter(enqueued_at__lt=Now() - WAKE_AFTER)
    found = list(idle.values_list("pk", flat=True))
    Task.objects.filter(pk__in=found).update(enqueued_at=Now())
    for task_id in found:
        _send(task_id)
    return found
