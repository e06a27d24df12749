"""The rows of a job over HTTP: reading, reviewing, taking them out."""

from collections.abc import Awaitable
from typing import Any

from django.http import HttpRequest
from ninja import Field, Schema, Status

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import Item, ItemStatus
from apps.batch.services import wake_pump
from apps.core.api import ApiError, NotFound, Page, get_owned, owner, page
from apps.datasets.models import Dataset
from apps.datasets.services import NothingUsable
from apps.embeddings.errors import TextsTooLarge
from apps.generation import services
from apps.generation.api.job_json import get_job_of
from apps.generation.api.router import router
from apps.generation.exports import to_dataset as exports_to_dataset
from apps.generation.exports.add_to_dataset import add_job_rows
from apps.generation.exports.data_card import data_card
from apps.generation.exports.downloads import export_response
from apps.generation.exports.formats import Format
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.spec import Spec
from apps.generation.review import restore
from apps.generation.review.apply_threshold import apply_threshold
from apps.generation.review.near_duplicates import (
    By,
    ComparisonPending,
    TooMany,
    compare_rows,
)
from apps.generation.rows.conversations import last_reply, messages_of
from apps.runtime.async_db import in_db
from apps.similarity import thresholds


class UsageOut(Schema):
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class RowOut(Schema):
    index: int
    number: int = Field(description="The row as pages and numbered exports count it, from 1 on.")
    status: str
    output: Any
    edited: Any
    reviewed: bool
    stands_for: int
    code: str
    reason: str
    attempts: int
    usage: UsageOut
    prompt: list[dict[str, str]]
    raw: str


class DatasetIn(Schema):
    name: str = Field(min_length=1, max_length=200, pattern=r"\S")
    text_field: str
    label_field: str


class AddIn(Schema):
    dataset: int
    text_field: str
    label_field: str


class AddedOut(Schema):
    id: int
    added: int
    known: int = Field(description="Left out: their text is in the dataset already.")
    tests: int = Field(description="Left out: they repeat one of its test rows.")
    unusable: int = Field(description="Left out: they have no usable text or label.")
    rows: int = Field(description="What the dataset has now.")


class DatasetMade(Schema):
    id: int
    rows: int


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
        "stands_for": item.original_index,
        "code": item.code,
        "reason": item.reason,
        "attempts": item.attempts,
        "usage": item,
        "prompt": messages_of(spec, item),
        "raw": last_reply(spec, item),
    }


def _review(request: HttpRequest, pk: int, index: int, action: Any) -> Any:
    job = get_job_of(request, pk)
    item = batches.rows_of(job.batch_id).filter(index=index).first()
    if item is None:
        raise NotFound("row")
    spec = job.spec
    try:
        action(item, spec)
    except WrongState as error:
        raise ApiError(409, "wrong_state", str(error)) from error
    except RecipeError as error:
        raise ApiError(422, "invalid", str(error)) from error
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
    """An accepted row is taken out; a job that refills and is at work makes another."""
    return _review(request, pk, index, lambda item, spec: batches.reject_row(item))


@router.patch("/jobs/{pk}/rows/{index}", response=RowOut)
def edit_row(request: HttpRequest, pk: int, index: int, data: Edit) -> Any:
    """Other words for some fields; the original is kept as `output`."""
    return _review(request, pk, index, lambda item, spec: services.edit(item, data.fields, spec))


class NearOut(Schema):
    done: int
    total: int
    steps: list[int] | None = Field(None, description="Thresholds, in percent.")
    histogram: list[int] | None = Field(
        None, description="Row counts by similarity to the most similar earlier row, from 50% up."
    )
    below: int | None = None
    rows: int | None = None
    accepted: int | None = None
    seen: int | None = Field(None, description="Reviewed rows. They do not change.")
    out: list[int] | None = Field(None, description="Rows that each threshold would reject.")
    back: list[int] | None = Field(None, description="Rows that each threshold would restore.")


class NearIn(Schema):
    by: By = By.TEXT
    threshold: float | None = Field(
        ge=thresholds.MIN_SIMILARITY,
        le=1,
        description="Rounded to percent; null: nothing is rejected.",
    )


class NearApplied(Schema):
    rejected: int
    restored: int
    goes_on: bool


@router.get("/jobs/{pk}/near-duplicates", response=NearOut)
async def near_duplicates(request: HttpRequest, pk: int, by: By = By.TEXT) -> Any:
    """What each threshold would do to the rows. Ask again while `done` is less than `total`."""
    job = await in_db(get_job_of, request, pk)
    found = await _compared(compare_rows(job, by))
    if isinstance(found, ComparisonPending):
        return {"done": found.done, "total": found.total}
    shown = await in_db(found.as_dict)
    return {"done": shown["rows"], "total": shown["rows"], **shown}


@router.post("/jobs/{pk}/near-duplicates", response=NearApplied)
async def judge_again(request: HttpRequest, pk: int, data: NearIn) -> Any:
    """Judges the stored rows by another threshold. Rejected rows are kept and can come back."""
    job = await in_db(get_job_of, request, pk)
    step = None if data.threshold is None else round(100 * data.threshold)
    applied = await _compared(apply_threshold(job, data.by, step))
    if isinstance(applied, ComparisonPending):
        raise ApiError(409, "not_ready", "Not all rows are compared yet. Poll with GET first.")
    if applied.goes_on:
        await in_db(wake_pump, job.batch.server_id)
    return applied


async def _compared(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except (TooMany, TextsTooLarge) as error:
        raise ApiError(422, "invalid", str(error)) from error


@router.get("/jobs/{pk}/export", response=Any)
def export_job(
    request: HttpRequest,
    pk: int,
    format: str = "jsonl",
    user: str | None = None,
    assistant: str | None = None,
    numbered: bool = False,
) -> Any:
    """The accepted rows, streamed.

    With `numbered` each has its `number` as the first field, `row` (not in the format `chat`).

    In the format `chat` each row is a conversation: `user` and `assistant` name its two fields,
    which are otherwise the last two texts that the model wrote. An empty `user`, or a recipe with
    one text, gives what was asked and answered.
    """
    job = get_job_of(request, pk)
    if format not in set(Format):
        known = ", ".join(Format)
        detail = f"Unknown export format {format!r}. Use {known}."
        raise ApiError(422, "unsupported_format", detail)
    try:
        return export_response(
            job, Format(format), user=user, assistant=assistant, numbered=numbered
        )
    except RecipeError as error:
        raise ApiError(422, "invalid", str(error)) from error


@router.get("/jobs/{pk}/card", response=Any)
def get_data_card(request: HttpRequest, pk: int) -> Any:
    """What the rows are and how they were made: recipe, model, prompts, seeds, counts, filters."""
    return data_card(get_job_of(request, pk))


@router.post("/jobs/{pk}/to-dataset", response={201: DatasetMade})
def to_dataset(request: HttpRequest, pk: int, data: DatasetIn) -> Any:
    """Create a dataset from the accepted rows."""
    job = get_job_of(request, pk)
    try:
        dataset = exports_to_dataset.to_dataset(
            job=job,
            name=data.name.strip(),
            text_field=data.text_field,
            label_field=data.label_field,
        )
    except RecipeError as error:
        raise ApiError(422, "unknown_field", str(error)) from error
    except exports_to_dataset.NothingAccepted as error:
        raise ApiError(409, "nothing_accepted", str(error)) from error
    except NothingUsable as error:
        raise ApiError(422, "nothing_usable", str(error)) from error
    return Status(201, {"id": dataset.pk, "rows": dataset.rows})


@router.post("/jobs/{pk}/add-to-dataset", response=AddedOut)
def add_to_dataset(request: HttpRequest, pk: int, data: AddIn) -> Any:
    """Adds the accepted rows to a dataset, as training rows of the origin “synthetic”.

    One change of the dataset, which can be undone.
    """
    job = get_job_of(request, pk)
    dataset = get_owned(Dataset, request, data.dataset)
    try:
        added = add_job_rows(
            job=job,
            dataset=dataset,
            text_field=data.text_field,
            label_field=data.label_field,
            by=owner(request),
        )
    except RecipeError as error:
        raise ApiError(422, "unknown_field", str(error)) from error
    except exports_to_dataset.NothingAccepted as error:
        raise ApiError(409, "nothing_accepted", str(error)) from error
    except ValueError as error:
        raise ApiError(422, "nothing_usable", str(error)) from error
    dataset.refresh_from_db()
    return {
        "id": dataset.pk,
        "rows": dataset.rows,
        "added": added.rows,
        "known": added.duplicates,
        "tests": added.test_rows,
        "unusable": added.unusable,
    }
