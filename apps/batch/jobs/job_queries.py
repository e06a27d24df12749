"""Questions about several jobs, for other rooms."""

from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, Exists, OuterRef, QuerySet

from apps.batch.models import ACTIVE, OPEN, Batch, Item
from apps.servers.models import Server


def batches_of(handler: str, server: Server, model: str) -> QuerySet[Batch]:
    """Query the jobs of a kind that a server ran with a model, the newest first."""
    return Batch.objects.filter(handler=handler, server=server, model=model).order_by("-pk")


def owned_batches(person: User, handler: str) -> QuerySet[Batch]:
    """Query the jobs of a kind that a person owns, the newest first."""
    return Batch.objects.owned_by(person).filter(handler=handler).order_by("-pk")


def stalled_batches(since: datetime) -> QuerySet[Batch]:
    """Query active jobs that have open rows and finished none since then.

    A job that waits for its next day is not stalled.
    """
    rows = Item.objects.filter(batch=OuterRef("pk"))
    active = Batch.objects.filter(status__in=ACTIVE, resumes_on=None, started__lt=since)
    return active.filter(Exists(rows.filter(status__in=OPEN))).exclude(
        Exists(rows.filter(finished__gt=since))
    )


def count_active_rows() -> dict[str, int]:
    """Count the rows of active jobs by status."""
    rows = Item.objects.filter(batch__status__in=ACTIVE)
    return dict(rows.values_list("status").annotate(Count("pk")).order_by())
