"""Datasets over HTTP."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Field, File, Form, Router, Schema, Status
from ninja.files import UploadedFile

from apps.core.api import ApiError, Page, not_found, owner, page
from apps.core.db import in_db
from apps.datasets import formats, services
from apps.datasets.formats import FormatError, Mapping
from apps.datasets.models import Dataset, Example
from apps.datasets.views import export_response

router = Router(tags=["datasets"])

REJECTED_SHOWN = 1_000


class RejectedOut(Schema):
    row: int
    column: str
    reason: str


class DatasetOut(Schema):
    id: int
    name: str
    origin: str
    created: datetime
    rows: int
    labels: dict[str, int]
    splits: dict[str, int]
    duplicates: int
    rejected_count: int


class DatasetDetail(DatasetOut):
    rejected: list[RejectedOut] = Field(description=f"The first {REJECTED_SHOWN:,}.")
    notes: list[str]


class ExampleOut(Schema):
    id: int
    index: int
    text: str
    label: str
    split: str
    origin: str


class ExamplePatch(Schema):
    label: str


class DatasetForm(Schema):
    name: str = Field("", max_length=200)
    text_column: str | None = None
    label_column: str | None = None
    split_column: str | None = None


def _show(dataset: Dataset) -> dict[str, Any]:
    return {
        "id": dataset.pk,
        "name": dataset.name,
        "origin": dataset.origin,
        "created": dataset.created,
        "rows": dataset.rows,
        "labels": dataset.label_counts,
        "splits": dataset.split_counts,
        "duplicates": dataset.duplicates,
        "rejected_count": dataset.rejected_count,
    }


def _show_all(dataset: Dataset) -> dict[str, Any]:
    rejections = dataset.rejections.values("row", "column", "reason")[:REJECTED_SHOWN]
    return _show(dataset) | {"rejected": list(rejections), "notes": dataset.notes}


def _show_example(example: Example) -> dict[str, Any]:
    names = ("index", "text", "label", "split", "origin")
    return {"id": example.pk} | {name: getattr(example, name) for name in names}


def _get(request: HttpRequest, pk: int) -> Dataset:
    dataset = Dataset.objects.owned_by(owner(request)).filter(pk=pk).first()
    if dataset is None:
        raise not_found("dataset")
    return dataset


@router.post("/datasets", response={201: DatasetDetail})
def add_dataset(request: HttpRequest, form: Form[DatasetForm], file: File[UploadedFile]) -> Any:
    """Imports a CSV, TSV or JSONL file. Columns that are not named are guessed."""
    try:
        upload = services.store_upload(owner=owner(request), file=file)
    except services.TooLarge as error:
        raise ApiError(413, "too_large", str(error)) from error
    try:
        layout = formats.inspect(upload.path, name=upload.file_name)
        guess = formats.guess_mapping(layout.columns, formats.sample(upload.path, layout))
        mapping = Mapping(
            form.text_column or guess.text,
            form.label_column or guess.label,
            form.split_column if form.split_column is not None else guess.split,
        )
        dataset = services.import_upload(
            upload, name=form.name.strip() or upload.file_name, mapping=mapping
        )
    except services.NothingUsable as error:
        errors = [
            {"loc": ["file", f"row {row.row}", row.column], "msg": row.reason}
            for row in error.rejected
        ]
        raise ApiError(422, "nothing_usable", str(error), errors=errors) from error
    except FormatError as error:
        raise ApiError(422, "bad_file", str(error)) from error
    finally:
        if upload.path.exists():
            services.remove_upload(upload)
    return Status(201, _show_all(dataset))


@router.get("/datasets", response=Page[DatasetOut])
def list_datasets(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    mine = Dataset.objects.owned_by(owner(request))
    return page(mine, _show, limit=limit, after=after, newest_first=True)


@router.get("/datasets/{int:pk}", response=DatasetDetail)
def get_dataset(request: HttpRequest, pk: int) -> Any:
    return _show_all(_get(request, pk))


@router.delete("/datasets/{int:pk}", response={204: None})
def delete_dataset(request: HttpRequest, pk: int) -> Any:
    _get(request, pk).delete()
    return Status(204, None)


@router.get("/datasets/{int:pk}/examples", response=Page[ExampleOut])
def list_examples(
    request: HttpRequest,
    pk: int,
    limit: int = 100,
    after: str | None = None,
    label: str | None = None,
) -> Any:
    rows = Example.objects.filter(dataset=_get(request, pk))
    if label is not None:
        rows = rows.filter(label=label)
    return page(rows, _show_example, limit=limit, after=after)


@router.patch("/examples/{int:pk}", response=ExampleOut)
def change_example(request: HttpRequest, pk: int, data: ExamplePatch) -> Any:
    mine = Example.objects.filter(dataset__owner=owner(request)).select_related("dataset")
    example = mine.filter(pk=pk).first()
    if example is None:
        raise not_found("example")
    try:
        return _show_example(services.relabel(example, data.label))
    except ValueError as error:
        raise ApiError(422, "invalid", str(error)) from error


@router.get("/datasets/{int:pk}/export")
async def export_dataset(
    request: HttpRequest, pk: int, format: Literal["jsonl", "csv"] = "jsonl"
) -> StreamingHttpResponse:
    """Streamed. JSONL is exact; in CSV a cell that a spreadsheet would run gets an apostrophe."""
    return export_response(await in_db(_get, request, pk), format)
