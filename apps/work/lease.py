"""A claimed task. Held by a worker while it lives; another claims it when the lease lapses."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from django.db import close_old_connections, connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.models import Task, TaskQuerySet, TaskState

LEASE = timedelta(seconds=60)
RENEW_SECONDS = 15.0
MAX_ATTEMPTS = 3


def claim(task_id: int) -> "HeldTask | None":
    """Return the task under a new lease, or None if it has ended or a living worker holds it."""
    token = uuid.uuid4()
    claimed = Task.objects.idle().filter(pk=task_id)
    if not claimed.update(
        state=TaskState.RUNNING,
        lease=token,
        lease_until=Now() + LEASE,
        attempts=F("attempts") + 1,
        started=Coalesce("started", Now()),
    ):
        return None
    return HeldTask(Task.objects.get(pk=task_id), token)


class HeldTask:
    """A task under this worker's lease.

    Inside a `with` block a thread renews the lease, because one step may take minutes. Without the
    block every write renews it.
    """

    def __init__(self, task: Task, token: uuid.UUID) -> None:
        self.task = task
        self._token = token
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_renewing, daemon=True)

    @property
    def subject(self) -> str:
        return self.task.subject

    @property
    def is_worn_out(self) -> bool:
        """True if workers died on this task too often to try once more."""
        return self.task.attempts > MAX_ATTEMPTS

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def renew(self, **values: Any) -> None:
        """Extend the lease, and write fields of the task.

        Raises:
            LeaseLost: the task is not this worker's any more. Nothing was written.
        """
        if not self._mine().update(lease_until=Now() + LEASE, **values):
            raise LeaseLost

    @contextmanager
    def fence(self, **values: Any) -> Iterator[None]:
        """Open a transaction that commits only under this lease.

        The UPDATE locks the task's row until the commit, so nobody can claim it in between.

        Raises:
            LeaseLost: the task is not this worker's any more. Nothing was written.
        """
        with transaction.atomic():
            self.renew(**values)
            yield

    def report(self, done: int, total: int) -> None:
        """Write the progress.

        Raises:
            LeaseLost, TaskCancelled: as `check`.
        """
        self.renew(done=done, total=total)
        self.check()

    def check(self) -> None:
        """Raise if the work must stop.

        Raises:
            TaskCancelled: someone asked for it.
            LeaseLost: the task is not this worker's any more.
        """
        cancelled = self._mine().values_list("cancel_requested", flat=True).first()
        if cancelled is None:
            raise LeaseLost
        if cancelled:
            raise TaskCancelled

    def end(self, state: TaskState, error: str = "") -> None:
        """Write the outcome and free the task. Call inside a transaction with the subject's own.

        Raises:
            LeaseLost: the task is not this worker's any more. Nothing was written.
        """
        if not self._mine().update(
            state=state, error=error, finished=Now(), lease=None, lease_until=None
        ):
            raise LeaseLost

    def release(self) -> None:
        """Give the task back, to be tried again after a while."""
        self._mine().update(state=TaskState.QUEUED, lease=None, lease_until=None, enqueued_at=Now())

    def _mine(self) -> TaskQuerySet:
        return Task.objects.active().filter(pk=self.task.pk, lease=self._token)

    def _keep_renewing(self) -> None:
        while not self._over.wait(RENEW_SECONDS):
            close_old_connections()
            if not self._mine().update(lease_until=Now() + LEASE):
                break
        connection.close()  # this thread's own
