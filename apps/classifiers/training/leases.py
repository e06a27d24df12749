"""Who works on a run. Held by a worker while it lives; another takes over when it lapses."""

import threading
import uuid
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from django.db import close_old_connections, connection
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from apps.classifiers.models import Run, Worked

LEASE = timedelta(seconds=60)
RENEW_SECONDS = 15.0
MAX_ATTEMPTS = 3


class Lost(Exception):
    """Another worker holds the run now, or it ended: this one must stop."""


class Cancelled(Exception):
    """A person asked for it to stop."""


class Lease:
    """Work that this worker holds, renewed by a thread of its own: a fit may take minutes.

    with Lease.take(run_id) as lease:
        lease.write(status=Status.FITTING)
    """

    def __init__(self, run_id: int, token: uuid.UUID, kind: type[Worked] = Run) -> None:
        self.run_id = run_id
        self.token = token
        self._kind = kind
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    @classmethod
    def take(cls, run_id: int, kind: type[Worked] = Run) -> Self | None:
        """The lease of active work, or None where a living worker holds it or it has ended."""
        now = timezone.now()
        token = uuid.uuid4()
        taken = (
            kind._default_manager.filter(pk=run_id, status__in=kind.ACTIVE)
            .filter(Q(lease_until=None) | Q(lease_until__lt=now))
            .update(lease=token, lease_until=now + LEASE, attempts=F("attempts") + 1)
        )
        return cls(run_id, token, kind) if taken else None

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
        mine = self._mine()
        if not mine.update(**values):
            raise Lost

    def check(self) -> None:
        """Raises:
        Cancelled: a person pressed Cancel.
        Lost: the run is not ours any more.
        """
        mine = self._mine()
        asked = mine.values_list("cancel_requested", flat=True).first()
        if asked is None:
            raise Lost
        if asked:
            raise Cancelled

    def end(self, status: str, **values: Any) -> None:
        """The last write: the run is over and free.

        Raises:
            Lost: another worker ended it, or holds it.
        """
        mine = self._mine()
        values |= {"status": status, "finished": timezone.now(), "lease": None, "lease_until": None}
        if not mine.update(**values):
            raise Lost

    def _mine(self) -> QuerySet[Worked]:
        active = self._kind._default_manager.filter(status__in=self._kind.ACTIVE)
        return active.filter(pk=self.run_id, lease=self.token)

    def _renew(self) -> None:
        while not self._over.wait(RENEW_SECONDS):
            close_old_connections()
            if not self._mine().update(lease_until=timezone.now() + LEASE):
                break
        connection.close()  # this thread's own
