"""The lease by which one worker holds an import. Its token is in every write."""

import uuid
from datetime import timedelta
from typing import Any

from django.db.models import F, Q
from django.utils import timezone

from apps.datasets.models import IN_PROGRESS, Upload

LEASE = timedelta(seconds=120)


class LeaseLost(Exception):
    """Another worker holds the upload now, or it was cancelled."""


class ImportLease:
    def __init__(self, upload_id: str, token: uuid.UUID) -> None:
        self.upload_id = upload_id
        self.token = token

    @classmethod
    def claim(cls, upload_id: str) -> "ImportLease | None":
        """Hold an import that waits or whose worker died; None if there is none to hold."""
        now = timezone.now()
        token = uuid.uuid4()
        free = Upload.objects.filter(pk=upload_id, state__in=IN_PROGRESS).filter(
            Q(lease_until=None) | Q(lease_until__lt=now)
        )
        claimed = free.update(lease=token, lease_until=now + LEASE, attempts=F("attempts") + 1)
        return cls(upload_id, token) if claimed else None

    def write(self, **values: Any) -> None:
        """Change the upload and renew the lease.

        Raises:
            LeaseLost: the lease is lost or the import cancelled. A surrounding transaction must end
                with it.
        """
        values = {"lease_until": timezone.now() + LEASE} | values
        held = Upload.objects.filter(pk=self.upload_id, lease=self.token, cancelled=False)
        if not held.update(**values):
            raise LeaseLost

    def renew(self) -> None:
        self.write()
