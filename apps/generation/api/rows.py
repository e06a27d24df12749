"""Rows of a job over HTTP: list, restore, reject, edit."""

from typing import Any

from django.http import HttpRequest
from ninja import Field, Schema

from apps.batch import services as batches
from apps.batch.models import Item, ItemStatus
from apps.batch.services import wake_pump
from apps.core.api import ApiError, NotFound, Page, page
from apps.generation.api.job_json import get_job_of
from apps.generation.api.router import router
from apps.generation.recipe.spec import Spec
from apps.generation.review import restore
from apps.generation.review.edit_row import edit_row as save_edit
from apps.generation.rows.conversations import last_reply, messages_of


class UsageOut(Schema):
    """Tokens of a row's answers; null where it has one and the server reported none."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


class RowOut(Schema):
    index: int
    number: int = Field(description="The row as pages and numbered exports count it, from 1 on.")
    status: str
    output: Any
    edited: Any
    reviewed: bool
    replaces: int
    code: str
    reason: str
    attempts: int
    usage: UsageOut
    prompt: list[dict[str, str]]
    raw: str


class Edit(Schema):
    fields: dict[str, str]


@router.get("/jobs/{pk}/rows", response=Page[RowOut])
def list_rows(
    request: HttpRequest,
    pk: int,
    status: str | None = None,
    code: str | None = None,
    limit: int = 100,
    after: str | None = None,
) -> Any:
    job = get_job_of(request, pk)
    items = batches.rows_of(job.batch_id)
    if status is not None:
        if status not in ItemStatus.values:
            known = ", ".join(ItemStatus.values)
            raise ApiError(422, "invalid", f"Unknown status {status!r}. Use {known}.")
        items = items.filter(status=status)
    if code is not None:
        items = items.filter(code=code)
    spec = job.spec
    return page(items, lambda item: _show_row(spec, item), limit=limit, after=after)


def _show_row(spec: Spec, item: Item) -> dict[str, Any]:
    return {
        "index": item.index,
        "number": item.index + 1,
        "status": item.status,
        "output": item.output,
        "edited": item.edited,
        "reviewed": item.reviewed,
        "replaces": item.original_index,
        "code": item.code,
        "reason": item.reason,
        "attempts": item.attempts,
        "usage": UsageOut.from_orm(item) if item.has_usage or not item.raw else UsageOut(),
        "prompt": messages_of(spec, item),
        "raw": last_reply(spec, item),
    }


def _review(request: HttpRequest, pk: int, index: int, action: Any) -> Any:
    job = get_job_of(request, pk)
    item = batches.rows_of(job.batch_id).filter(index=index).first()
    if item is None:
        raise NotFound("row")
    spec = job.spec
    action(item, spec)
    wake_pump(job.batch.server_id)
    return _show_row(spec, item)


@router.post("/jobs/{pk}/rows/{index}/restore", response=RowOut)
def restore_row(request: HttpRequest, pk: int, index: int) -> Any:
    """Restore a rejected row.

    One that was given up before all of its columns were written is `pending` again, and goes on
    with the columns that are missing. 409 if there is nothing in it to go on from.
    """
    return _review(request, pk, index, restore.restore)


@router.post("/jobs/{pk}/rows/{index}/reject", response=RowOut)
def reject_row(request: HttpRequest, pk: int, index: int) -> Any:
    """Reject an accepted row. An active job that refills generates another."""
    return _review(request, pk, index, lambda item, spec: batches.reject_row(item))


@router.patch("/jobs/{pk}/rows/{index}", response=RowOut)
def edit_row(request: HttpRequest, pk: int, index: int, data: Edit) -> Any:
    """Edit some fields. The original is kept as `output`."""
    return _review(request, pk, index, lambda item, spec: save_edit(item, data.fields, spec))
