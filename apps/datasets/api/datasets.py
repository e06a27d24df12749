"""Datasets over HTTP: their details, rejected rows, report and export."""

from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Field, Router, Schema, Status

from apps.core.api import ApiError, Page, get_owned, owner, page
from apps.datasets import near_duplicates, services
from apps.datasets.models import Dataset, Rejection
from apps.datasets.rows import removal
from apps.datasets.views.datasets import export_response
from apps.runtime.async_db import in_db

router = Router(tags=["datasets"])

REJECTED_SHOWN = 1_000


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
    columns: list[str] = Field(description="Extra columns kept with each row.")


class DatasetDetail(DatasetOut):
    rejected: list[RejectedOut] = Field(description=f"The first {REJECTED_SHOWN:,}.")
    notes: list[str]


def show(dataset: Dataset) -> dict[str, Any]:
    """As `DatasetOut`."""
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


def show_with_rejected(dataset: Dataset) -> dict[str, Any]:
    """As `DatasetDetail`."""
    rejections = [show_rejected(row) for row in dataset.rejections.all()[:REJECTED_SHOWN]]
    return show(dataset) | {"rejected": rejections, "notes": dataset.notes}


def show_rejected(row: Rejection) -> dict[str, Any]:
    """As `RejectedOut`."""
    return {"row": row.row, "column": row.column, "reason": row.reason, "file": row.file}


def get_mine(request: HttpRequest, pk: int) -> Dataset:
    """Raises:
    ApiError: it is not there, or not one's own.
    """
    return get_owned(Dataset, request, pk)


def refused(error: ValueError) -> ApiError:
    """Return the API error for a change that cannot be made."""
    if isinstance(error, services.BeingChanged):
        return ApiError(409, "being_changed", str(error))
    return ApiError(422, "invalid", str(error))


@router.get("/datasets", response=Page[DatasetOut])
def list_datasets(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    mine = Dataset.objects.owned_by(owner(request))
    return page(mine, show, limit=limit, after=after, newest_first=True)


@router.get("/datasets/{int:pk}", response=DatasetDetail)
def get_dataset(request: HttpRequest, pk: int) -> Any:
    return show_with_rejected(get_mine(request, pk))


@router.delete("/datasets/{int:pk}", response={204: None})
def delete_dataset(request: HttpRequest, pk: int) -> Any:
    dataset = get_mine(request, pk)
    removal.remove_dataset(dataset)
    return Status(204, None)


@router.get("/datasets/{int:pk}/export")
async def export_dataset(
    request: HttpRequest, pk: int, format: Literal["jsonl", "csv", "parquet"] = "jsonl"
) -> StreamingHttpResponse:
    """Streamed. JSONL and Parquet are exact; in CSV a cell that a spreadsheet would run as a
    formula gets an apostrophe."""
    return export_response(await in_db(get_mine, request, pk), format)


@router.get("/datasets/{int:pk}/rejected", response=Page[RejectedOut])
def list_rejected(request: HttpRequest, pk: int, limit: int = 100, after: str | None = None) -> Any:
    """List rows of the source that were rejected, with the reason."""
    rows: QuerySet[Rejection] = get_mine(request, pk).rejections.all()
    return page(rows, show_rejected, limit=limit, after=after)


@router.get("/datasets/{int:pk}/report")
def get_report(request: HttpRequest, pk: int) -> Any:
    """Duplicates, conflicts, leaks, labels with few rows or much alike, of the present version."""
    dataset = get_mine(request, pk)
    return dict(services.report(dataset)) | {"near": near_duplicates.search_status(dataset)}
