"""Who works on a run. Held by a worker while it lives; another takes over when it lapses."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from django.db import close_old_connections, connection
from django.db.models import F, Q
from django.utils import timezone

from apps.classifiers.models import ACTIVE, Run, Status

LEASE = timedelta(seconds=60)
RENEW_SECONDS = 15.0
MAX_ATTEMPTS = 3


class Lost(Exception):
    """Another worker holds the run now, or it ended: this one must stop."""


class Cancelled(Exception):
    """A person asked for it to stop."""


class Lease:
    """A run that this worker holds, renewed by a thread of its own: a fit may take minutes.

    with Lease(run_id, token) as lease:
        lease.write(status=Status.FITTING)
    """

    def __init__(self, run_id: int, token: uuid.UUID) -> None:
        self.run_id = run_id
        self.token = token
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    @classmethod
    def take(cls, run_id: int) -> Self | None:
        """The lease of an active run, or None where a living worker holds it or it has ended."""
        now = timezone.now()
        token = uuid.uuid4()
        taken = (
            Run.objects.filter(pk=run_id, status__in=ACTIVE)
            .filter(Q(lease_until=None) | Q(lease_until__lt=now))
            .update(lease=token, lease_until=now + LEASE, attempts=F("attempts") + 1)
        )
        return cls(run_id, token) if taken else None

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

    def write(self, **values: Any) -> None:
        """Changes the run, as long as it is ours.

        Raises:
            Lost: it is not.
        """
        values["lease_until"] = timezone.now() + LEASE
        mine = Run.objects.filter(pk=self.run_id, lease=self.token, status__in=ACTIVE)
        if not mine.update(**values):
            raise Lost

    def check(self) -> None:
        """Raises:
        Cancelled: a person pressed Cancel.
        Lost: the run is not ours any more.
        """
        mine = Run.objects.filter(pk=self.run_id, lease=self.token, status__in=ACTIVE)
        asked = mine.values_list("cancel_requested", flat=True).first()
        if asked is None:
            raise Lost
        if asked:
            raise Cancelled

    def end(self, status: Status, **values: Any) -> None:
        """The last write: the run is over and free.

        Raises:
            Lost: another worker ended it, or holds it.
        """
        mine = Run.objects.filter(pk=self.run_id, lease=self.token, status__in=ACTIVE)
        values |= {"status": status, "finished": timezone.now(), "lease": None, "lease_until": None}
        if not mine.update(**values):
            raise Lost

    def _renew(self) -> None:
        renewed: Callable[[], int] = lambda: Run.objects.filter(  # noqa: E731
            pk=self.run_id, lease=self.token, status__in=ACTIVE
        ).update(lease_until=timezone.now() + LEASE)
        while not self._over.wait(RENEW_SECONDS):
            close_old_connections()
            if not renewed():
                break
        connection.close()  # this thread's own
