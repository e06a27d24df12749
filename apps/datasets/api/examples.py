"""The rows of a dataset over HTTP."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Field, Schema, Status

from apps.core.api import NotFound, Page, owner, page
from apps.datasets import services
from apps.datasets.api.datasets import RejectedOut, get_mine, refused, router
from apps.datasets.api.revisions import REVISED, revised
from apps.datasets.models import Dataset, Example
from apps.datasets.rows import browsing
from apps.datasets.rows.browsing import Filters
from apps.datasets.rows.reports import Issue
from apps.files import ExampleRow

MAX_ADDED = 1_000


class ExampleOut(Schema):
    id: int
    index: int
    text: str
    label: str
    split: str
    origin: str
    meta: dict[str, str]


class ExamplePatch(Schema):
    label: str | None = Field(None, min_length=1)
    split: Literal["", "train", "validation", "test"] | None = None


class ExampleIn(Schema):
    text: str
    label: str = ""
    split: Literal["", "train", "validation", "test"] = ""
    meta: dict[str, str] = {}


class ExamplesIn(Schema):
    rows: list[ExampleIn] = Field(min_length=1, max_length=MAX_ADDED)


class AddedOut(Schema):
    version: int
    added: int
    rejected: list[RejectedOut]


def _show_example(example: Example) -> dict[str, Any]:
    names = ("index", "text", "label", "split", "origin", "meta")
    return {"id": example.pk} | {name: getattr(example, name) for name in names}


def _get_example(request: HttpRequest, pk: int) -> Example:
    mine = Example.objects.filter(dataset__in=Dataset.objects.owned_by(owner(request)))
    example = mine.filter(pk=pk).select_related("dataset").first()
    if example is None:
        raise NotFound("example")
    return example


@router.get("/datasets/{int:pk}/examples", response=Page[ExampleOut])
def list_examples(
    request: HttpRequest,
    pk: int,
    limit: int = 100,
    after: str | None = None,
    label: str | None = None,
    split: str | None = None,
    issue: Issue | None = None,
    q: Annotated[str, Field(max_length=200)] = "",
) -> Any:
    """Use an empty `label=` for unlabelled rows."""
    filters = Filters(label, split, issue, q.replace("\0", ""))
    rows = browsing.rows(get_mine(request, pk), filters)
    return page(rows, _show_example, limit=limit, after=after)


class MatchingIn(Schema):
    """Filters as in the list of examples; no filter means every row."""

    label: str | None = None
    split: Literal["", "train", "validation", "test"] | None = None
    issue: Issue | None = None
    q: str = Field("", max_length=200)
    action: Literal["label", "split", "delete"]
    value: str = Field("", description="The label or the split that the rows get.")


@router.post("/datasets/{int:pk}/examples/change-matching", response=REVISED)
def change_matching(request: HttpRequest, pk: int, data: MatchingIn) -> Any:
    """Change or delete every row that a filter finds. 204: nothing had to be changed. 202: a worker
    changes the rows; poll `/change`."""
    filters = Filters(data.label, data.split, data.issue, data.q.replace("\0", ""))
    try:
        return revised(
            services.change_matching(
                get_mine(request, pk), filters, data.action, data.value, by=owner(request)
            )
        )
    except ValueError as error:
        raise refused(error) from error


@router.post("/datasets/{int:pk}/examples", response={201: AddedOut})
def add_examples(request: HttpRequest, pk: int, data: ExamplesIn) -> Any:
    dataset = get_mine(request, pk)
    rows = [
        ExampleRow(row.text, row.label, row.split or None, "added over the API", row.meta)
        for row in data.rows
    ]
    try:
        revision, rejected = services.add_rows(dataset, rows, by=owner(request))
    except ValueError as error:
        raise refused(error) from error
    bad = [{"row": row.row, "column": row.column, "reason": row.reason} for row in rejected]
    added = revision.rows if revision else 0
    return Status(201, {"version": dataset.version, "added": added, "rejected": bad})


@router.patch("/examples/{int:pk}", response=ExampleOut)
def change_example(request: HttpRequest, pk: int, data: ExamplePatch) -> Any:
    example = _get_example(request, pk)
    try:
        if data.label is not None:
            if not data.label.strip():
                raise ValueError("The label is empty.")
            services.relabel(example, data.label, by=owner(request))
        if data.split is not None:
            services.set_split(example.dataset, [example.index], data.split, by=owner(request))
            example.refresh_from_db()
    except ValueError as error:
        raise refused(error) from error
    return _show_example(example)


@router.delete("/examples/{int:pk}", response={204: None})
def delete_example(request: HttpRequest, pk: int) -> Any:
    example = _get_example(request, pk)
    try:
        services.delete_rows(example.dataset, [example.index], by=owner(request))
    except ValueError as error:
        raise refused(error) from error
    return Status(204, None)
