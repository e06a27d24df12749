"""Datasets over HTTP."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Field, File, Form, Router, Schema, Status
from ninja.files import UploadedFile

from apps.core.api import ApiError, Page, not_found, owner, page
from apps.core.db import in_db
from apps.datasets import browsing, formats, importing, removal, services, tasks
from apps.datasets.browsing import Filters
from apps.datasets.formats import ExampleRow, FormatError, Mapping
from apps.datasets.importing import Plan
from apps.datasets.models import Dataset, Example, Rejection, Revision, Upload, UploadState
from apps.datasets.reports import Issue
from apps.datasets.views.datasets import export_response

router = Router(tags=["datasets"])

REJECTED_SHOWN = 1_000
MAX_ADDED = 1_000


class RejectedOut(Schema):
    row: int
    column: str
    reason: str
    file: str = ""


class DatasetOut(Schema):
    id: int
    name: str
    origin: str
    created: datetime
    version: int
    rows: int
    unlabelled: int
    labels: dict[str, int]
    splits: dict[str, int]
    duplicates: int
    rejected_count: int
    columns: list[str] = Field(description="The extra columns that are kept with each row.")


class DatasetDetail(DatasetOut):
    rejected: list[RejectedOut] = Field(description=f"The first {REJECTED_SHOWN:,}.")
    notes: list[str]


class ImportOut(Schema):
    id: UUID
    status: str = Field(description="waiting, queued, importing, done, failed")
    rows: int = Field(description="Read so far.")
    share: float
    eta_s: float | None
    dataset: int | None = Field(description="Once it is done.")
    error: str


class ImportStarted(Schema):
    import_: ImportOut = Field(alias="import")


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


class RevisionOut(Schema):
    number: int
    what: str
    rows: int
    created: datetime
    undone: bool
    undoes: int | None = None


class AddedOut(Schema):
    version: int
    added: int
    rejected: list[RejectedOut]


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


class DatasetForm(Schema):
    name: str = Field("", max_length=200)
    text_column: str | None = None
    label_column: str | None = Field(None, description="Empty: the file has no labels.")
    second_label_column: str | None = Field(None, description="Joined to the first.")
    split_column: str | None = None
    keep_unlabelled: bool = False
    keep_extra: bool = True
    background: bool = Field(False, description="Do not wait, also for a small file.")


def _show(dataset: Dataset) -> dict[str, Any]:
    return {
        "id": dataset.pk,
        "name": dataset.name,
        "origin": dataset.origin,
        "created": dataset.created,
        "version": dataset.version,
        "rows": dataset.rows,
        "unlabelled": dataset.unlabelled,
        "labels": dataset.label_counts,
        "splits": dataset.split_counts,
        "duplicates": dataset.duplicates,
        "rejected_count": dataset.rejected_count,
        "columns": dataset.extra_columns,
    }


def _show_all(dataset: Dataset) -> dict[str, Any]:
    rejections = [_show_rejected(row) for row in dataset.rejections.all()[:REJECTED_SHOWN]]
    return _show(dataset) | {"rejected": rejections, "notes": dataset.notes}


def _show_rejected(row: Rejection) -> dict[str, Any]:
    return {"row": row.row, "column": row.column, "reason": row.reason, "file": row.file}


def _show_example(example: Example) -> dict[str, Any]:
    names = ("index", "text", "label", "split", "origin", "meta")
    return {"id": example.pk} | {name: getattr(example, name) for name in names}


def _show_import(upload: Upload) -> dict[str, Any]:
    done = upload.state == UploadState.DONE
    return {
        "id": upload.pk,
        "status": upload.state,
        "rows": upload.done_rows,
        "share": upload.done_share,
        "eta_s": upload.eta(),
        "dataset": upload.dataset_id if done else None,
        "error": upload.error,
    }


def _show_revision(revision: Revision) -> dict[str, Any]:
    return {
        "number": revision.number,
        "what": revision.what,
        "rows": revision.rows,
        "created": revision.created,
        "undone": revision.undone,
        "undoes": revision.undoes.number if revision.undoes else None,
    }


def _get(request: HttpRequest, pk: int) -> Dataset:
    dataset = Dataset.objects.owned_by(owner(request)).filter(pk=pk).first()
    if dataset is None:
        raise not_found("dataset")
    return dataset


def _get_example(request: HttpRequest, pk: int) -> Example:
    mine = Example.objects.filter(dataset__in=Dataset.objects.owned_by(owner(request)))
    example = mine.filter(pk=pk).select_related("dataset").first()
    if example is None:
        raise not_found("example")
    return example


# --- In and out ---------------------------------------------------------------


@router.post("/datasets", response={201: DatasetDetail, 202: ImportStarted}, by_alias=True)
def add_dataset(
    request: HttpRequest, form: Form[DatasetForm], file: File[list[UploadedFile]]
) -> Any:
    """Imports files: CSV, TSV, JSONL, plain text, Excel or Parquet. Columns not named are guessed.

    A large upload is answered with 202 and goes on in the background: see `/imports/{id}`. Of
    several files each may hold one split, told by its name (“train”, “test”).
    """
    try:
        upload = services.store_upload(owner=owner(request), files=file)
    except services.TooLarge as error:
        raise ApiError(413, "too_large", str(error)) from error
    keep = False
    try:
        plan = _plan(upload, form)
        if importing.is_small(upload) and not form.background:
            return Status(201, _show_all(services.import_upload(upload, plan)))
        importing.enqueue(upload, plan)
        keep = True
        tasks.wake_import(upload)
        upload.refresh_from_db()
        return Status(202, {"import": _show_import(upload)})
    except services.NothingUsable as error:
        errors = [
            {"loc": ["file", f"row {row.row}", row.column], "msg": row.reason}
            for row in error.rejected
        ]
        raise ApiError(422, "nothing_usable", str(error), errors=errors) from error
    except FormatError as error:
        raise ApiError(422, "bad_file", str(error)) from error
    finally:
        if not keep and upload.path.exists():
            services.remove_upload(upload)


def _plan(upload: Upload, form: DatasetForm) -> Plan:
    first = upload.files[0]["name"]
    layout = formats.inspect(upload.path, name=first)
    guess = formats.guess_mapping(layout.columns, formats.sample(upload.path, layout))
    label = form.label_column if form.label_column is not None else guess.label
    mapping = Mapping(
        form.text_column or guess.text,
        label or None,
        (form.split_column if form.split_column is not None else guess.split) or None,
        second_label=form.second_label_column or None,
        keep_unlabelled=form.keep_unlabelled,
        keep_extra=form.keep_extra,
    )
    return Plan(form.name.strip() or (first if upload.parts else upload.file_name), mapping)


@router.get("/imports/{uuid:pk}", response=ImportOut)
def get_import(request: HttpRequest, pk: UUID) -> Any:
    return _show_import(_get_upload(request, pk))


@router.delete("/imports/{uuid:pk}", response={204: None})
def cancel_import(request: HttpRequest, pk: UUID) -> Any:
    """Ends an import and removes what it wrote."""
    upload = _get_upload(request, pk)
    if upload.is_active:
        importing.cancel(upload)
    else:
        services.remove_upload(upload)
    return Status(204, None)


def _get_upload(request: HttpRequest, pk: UUID) -> Upload:
    upload = Upload.objects.owned_by(owner(request)).filter(pk=pk).first()
    if upload is None:
        raise not_found("import")
    return upload


@router.get("/datasets", response=Page[DatasetOut])
def list_datasets(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    mine = Dataset.objects.owned_by(owner(request))
    return page(mine, _show, limit=limit, after=after, newest_first=True)


@router.get("/datasets/{int:pk}", response=DatasetDetail)
def get_dataset(request: HttpRequest, pk: int) -> Any:
    return _show_all(_get(request, pk))


@router.delete("/datasets/{int:pk}", response={204: None})
def delete_dataset(request: HttpRequest, pk: int) -> Any:
    dataset = _get(request, pk)
    if not removal.remove(dataset):
        tasks.wake_removal(dataset)
    return Status(204, None)


@router.get("/datasets/{int:pk}/export")
async def export_dataset(
    request: HttpRequest, pk: int, format: Literal["jsonl", "csv", "parquet"] = "jsonl"
) -> StreamingHttpResponse:
    """Streamed. JSONL and Parquet are exact; in CSV a cell that a spreadsheet would run as a
    formula gets an apostrophe."""
    return export_response(await in_db(_get, request, pk), format)


@router.get("/datasets/{int:pk}/rejected", response=Page[RejectedOut])
def list_rejected(request: HttpRequest, pk: int, limit: int = 100, after: str | None = None) -> Any:
    """Every row of the source that is not in the dataset, and why."""
    rows: QuerySet[Rejection] = _get(request, pk).rejections.all()
    return page(rows, _show_rejected, limit=limit, after=after)


@router.get("/datasets/{int:pk}/report")
def get_report(request: HttpRequest, pk: int) -> dict[str, Any]:
    """Duplicates, conflicts, leaks, labels with few rows or much alike, of the present version."""
    dataset = _get(request, pk)
    return dict(services.report(dataset)) | {"near": dataset.near}


@router.get("/datasets/{int:pk}/snapshot", response=SnapshotOut)
def get_snapshot(request: HttpRequest, pk: int) -> Any:
    """The present version and the SHA-256 of its rows: what a training run writes down."""
    return services.snapshot(_get(request, pk))


# --- Rows ---------------------------------------------------------------------


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
    """`label=` alone asks for rows without one."""
    filters = Filters(label, split, issue, q.replace("\0", ""))
    return page(browsing.rows(_get(request, pk), filters), _show_example, limit=limit, after=after)


@router.post("/datasets/{int:pk}/examples", response={201: AddedOut})
def add_examples(request: HttpRequest, pk: int, data: ExamplesIn) -> Any:
    dataset = _get(request, pk)
    rows = [
        ExampleRow(row.text, row.label, row.split or None, "added over the API", row.meta)
        for row in data.rows
    ]
    try:
        revision, rejected = services.add_rows(dataset, rows, by=owner(request))
    except ValueError as error:
        raise ApiError(422, "invalid", str(error)) from error
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
        raise ApiError(422, "invalid", str(error)) from error
    return _show_example(example)


@router.delete("/examples/{int:pk}", response={204: None})
def delete_example(request: HttpRequest, pk: int) -> Any:
    example = _get_example(request, pk)
    services.delete_rows(example.dataset, [example.index], by=owner(request))
    return Status(204, None)


@router.post("/datasets/{int:pk}/merge-labels", response={200: RevisionOut, 204: None})
def merge(request: HttpRequest, pk: int, data: MergeIn) -> Any:
    """Makes one label of several; 204 where nothing had to be changed."""
    dataset = _get(request, pk)
    try:
        return _revised(services.merge_labels(dataset, data.labels, data.into, by=owner(request)))
    except ValueError as error:
        raise ApiError(422, "invalid", str(error)) from error


@router.post("/datasets/{int:pk}/split", response={200: RevisionOut, 204: None})
def make_split(request: HttpRequest, pk: int, data: SplitIn) -> Any:
    """Marks a share of each label's texts as test, rows with the same text together."""
    dataset = _get(request, pk)
    try:
        return _revised(
            services.make_split(dataset, share=data.share, seed=data.seed, by=owner(request))
        )
    except ValueError as error:
        raise ApiError(422, "invalid", str(error)) from error


@router.post("/datasets/{int:pk}/undo", response=RevisionOut)
def undo(request: HttpRequest, pk: int) -> Any:
    revision = services.undo(_get(request, pk), by=owner(request))
    if revision is None:
        raise ApiError(409, "nothing_to_undo", "There is nothing to undo.")
    return _show_revision(revision)


@router.get("/datasets/{int:pk}/revisions", response=Page[RevisionOut])
def list_revisions(
    request: HttpRequest, pk: int, limit: int = 100, after: str | None = None
) -> Any:
    revisions: QuerySet[Revision] = _get(request, pk).revisions.select_related("undoes")
    return page(revisions, _show_revision, limit=limit, after=after, newest_first=True)


def _revised(revision: Revision | None) -> Any:
    return Status(204, None) if revision is None else Status(200, _show_revision(revision))
