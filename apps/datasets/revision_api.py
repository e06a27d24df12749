"""Changes of a whole dataset over HTTP, and its versions."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Schema, Status

from apps.core.api import ApiError, Page, owner, page
from apps.datasets import services
from apps.datasets.dataset_api import get_mine, router
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
    """The present version and the SHA-256 of its rows: what a training run writes down."""
    return services.snapshot(get_mine(request, pk))


@router.post("/datasets/{int:pk}/merge-labels", response={200: RevisionOut, 204: None})
def merge(request: HttpRequest, pk: int, data: MergeIn) -> Any:
    """Makes one label of several; 204 where nothing had to be changed."""
    dataset = get_mine(request, pk)
    try:
        return _revised(services.merge_labels(dataset, data.labels, data.into, by=owner(request)))
    except ValueError as error:
        raise ApiError(422, "invalid", str(error)) from error


@router.post("/datasets/{int:pk}/split", response={200: RevisionOut, 204: None})
def make_split(request: HttpRequest, pk: int, data: SplitIn) -> Any:
    """Marks a share of each label's texts as test, rows with the same text together."""
    dataset = get_mine(request, pk)
    try:
        return _revised(
            services.make_split(dataset, share=data.share, seed=data.seed, by=owner(request))
        )
    except ValueError as error:
        raise ApiError(422, "invalid", str(error)) from error


@router.post("/datasets/{int:pk}/undo", response=RevisionOut)
def undo(request: HttpRequest, pk: int) -> Any:
    revision = services.undo(get_mine(request, pk), by=owner(request))
    if revision is None:
        raise ApiError(409, "nothing_to_undo", "There is nothing to undo.")
    return _show_revision(revision)


@router.get("/datasets/{int:pk}/revisions", response=Page[RevisionOut])
def list_revisions(
    request: HttpRequest, pk: int, limit: int = 100, after: str | None = None
) -> Any:
    revisions: QuerySet[Revision] = get_mine(request, pk).revisions.select_related("undoes")
    return page(revisions, _show_revision, limit=limit, after=after, newest_first=True)


def _revised(revision: Revision | None) -> Any:
    return Status(204, None) if revision is None else Status(200, _show_revision(revision))
