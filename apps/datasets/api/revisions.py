"""Changes of a whole dataset over HTTP, and its versions."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Schema, Status

from apps.core.api import ApiError, Page, owner, page
from apps.datasets import services
from apps.datasets.api.datasets import get_mine, refused, router
from apps.datasets.models import Revision


class RevisionOut(Schema):
    number: int
    what: str
    rows: int
    created: datetime
    undone: bool
    undoes: int | None = None


class MergeIn(Schema):
    labels: list[str] = Field(min_length=1, max_length=1_000)
    into: str


class SplitIn(Schema):
    share: float = Field(0.2, gt=0, lt=1)
    seed: int = Field(0, ge=0, lt=2**32)


class ChangeOut(Schema):
    """A change of many rows that a worker makes."""

    kind: str
    done: int = Field(description="Rows.")
    total: int
    error: str = Field(description="Why it failed, and was taken back. Empty: it is under way.")


class SnapshotOut(Schema):
    version: int
    rows: int
    hash: str


def _show_revision(revision: Revision) -> dict[str, Any]:
    return {
        "number": revision.number,
        "what": revision.what,
        "rows": revision.rows,
        "created": revision.created,
        "undone": revision.undone,
        "undoes": revision.undoes.number if revision.undoes else None,
    }


@router.get("/datasets/{int:pk}/snapshot", response=SnapshotOut)
def get_snapshot(request: HttpRequest, pk: int) -> Any:
    """Return the current version and the SHA-256 of its rows, as a training run records it."""
    return services.snapshot(get_mine(request, pk))


REVISED = {200: RevisionOut, 202: ChangeOut, 204: None}


@router.post("/datasets/{int:pk}/merge-labels", response=REVISED)
def merge(request: HttpRequest, pk: int, data: MergeIn) -> Any:
    """Make one label of several, or rename one. 204: nothing had to be changed. 202: a worker
    changes the rows; poll `/change`."""
    dataset = get_mine(request, pk)
    try:
        return revised(services.merge_labels(dataset, data.labels, data.into, by=owner(request)))
    except ValueError as error:
        raise refused(error) from error


@router.get("/datasets/{int:pk}/change", response={200: ChangeOut, 204: None})
def get_change(request: HttpRequest, pk: int) -> Any:
    """Return the change of many rows that is under way, or that failed. 204: there is none."""
    change = services.pending_change(get_mine(request, pk))
    return Status(204, None) if change is None else Status(200, _show_change(change))


@router.post("/datasets/{int:pk}/split", response=REVISED)
def make_split(request: HttpRequest, pk: int, data: SplitIn) -> Any:
    """Mark a share of each label's texts as test, rows with the same text together. Rows that have
    a split keep it."""
    dataset = get_mine(request, pk)
    try:
        return revised(
            services.make_split(dataset, share=data.share, seed=data.seed, by=owner(request))
        )
    except ValueError as error:
        raise refused(error) from error


@router.post("/datasets/{int:pk}/undo", response={200: RevisionOut, 202: ChangeOut})
def undo(request: HttpRequest, pk: int) -> Any:
    """Take the last change back. 202: a worker does, since many rows were changed."""
    try:
        revision = services.undo(get_mine(request, pk), by=owner(request))
    except ValueError as error:
        raise refused(error) from error
    if revision is None:
        raise ApiError(409, "nothing_to_undo", "Nothing to undo.")
    return revised(revision)


@router.get("/datasets/{int:pk}/revisions", response=Page[RevisionOut])
def list_revisions(
    request: HttpRequest, pk: int, limit: int = 100, after: str | None = None
) -> Any:
    revisions: QuerySet[Revision] = get_mine(request, pk).revisions.filter(complete=True)
    revisions = revisions.select_related("undoes")
    return page(revisions, _show_revision, limit=limit, after=after, newest_first=True)


def revised(changed: services.Changed) -> Any:
    if isinstance(changed, services.PendingChange):
        return Status(202, _show_change(changed))
    return Status(204, None) if changed is None else Status(200, _show_revision(changed))


def _show_change(change: services.PendingChange) -> dict[str, Any]:
    return {name: getattr(change, name) for name in ("kind", "done", "total", "error")}
