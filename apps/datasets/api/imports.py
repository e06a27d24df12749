"""Files in, over HTTP: an upload, and how far its import is."""

from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Field, File, Form, Schema, Status
from ninja.files import UploadedFile

from apps import files
from apps.core.api import ApiError, get_owned, owner
from apps.core.errors import ErrorPlace
from apps.core.quotas import limited
from apps.datasets import services
from apps.datasets.api.datasets import DatasetDetail, router, show_with_rejected
from apps.datasets.imports import import_queue, importing
from apps.datasets.imports.options import ImportOptions
from apps.datasets.models import Upload, UploadState
from apps.files import ColumnMapping, FormatError, Layout, Quoting, ReadOptions


class ImportOut(Schema):
    id: UUID
    status: str = Field(description="waiting, queued, importing, done, failed")
    rows: int = Field(description="Rows read so far.")
    share: float
    eta_s: float | None
    dataset: int | None = Field(description="Set when the import is done.")
    error: str


class ImportStarted(Schema):
    import_: ImportOut = Field(alias="import")


class DatasetForm(Schema):
    name: str = Field("", max_length=200)
    text_column: str | None = None
    label_column: str | None = Field(None, description="Empty if the file has no labels.")
    second_label_column: str | None = Field(None, description="Joined to the first label.")
    split_column: str | None = None
    keep_unlabelled: bool = False
    keep_extra: bool = Field(True, description="Keep the other columns with each row.")
    ignored_columns: list[str] = Field(
        [], max_length=files.MAX_COLUMNS, description="Other columns that are left out."
    )
    encoding: str | None = Field(
        None, description=f"Detected if not given. One of: {', '.join(files.ENCODINGS)}."
    )
    quoting: Literal["auto", "standard", "none"] = Field(
        "auto",
        description="Of CSV and TSV. standard: a quoted cell may hold any line breaks. none: a "
        "quote is a character. auto: whichever fits the table; lines that look like rows of their "
        "own are never read as one cell.",
    )
    sheet: str | None = Field(None, description="Of an Excel file. The first with a table if null.")
    background: bool = Field(False, description="Return at once, even for a small file.")


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


@router.post("/datasets", response={201: DatasetDetail, 202: ImportStarted}, by_alias=True)
@limited("readings")
def add_dataset(
    request: HttpRequest, form: Form[DatasetForm], file: File[list[UploadedFile]]
) -> Any:
    """Import files: CSV, TSV, JSON, JSONL, plain text, Excel or Parquet. Columns not named are
    guessed. Fields inside fields are named by their path: `annotations.0.result.0.value.choices.0`.

    A large upload is answered with 202 and goes on in the background: see `/imports/{id}`. Of
    several files each may hold one split, told by its name (“train”, “test”).
    """
    upload = services.store_upload(owner=owner(request), files=file)
    keep = False
    try:
        options = _import_options(upload, form)
        if not form.background and import_queue.is_small(upload, options.read):
            return Status(201, show_with_rejected(services.import_upload(upload, options)))
        import_queue.enqueue_import(upload, options)
        keep = True
        return Status(202, {"import": _show_import(upload)})
    except services.NothingUsable as error:
        errors = [
            ErrorPlace(loc=["file", f"row {row.row}", row.column], msg=row.reason)
            for row in error.rejected
        ]
        raise ApiError(422, "nothing_usable", str(error), errors=errors) from error
    except FormatError as error:
        raise ApiError(422, "bad_file", str(error)) from error
    finally:
        if not keep and upload.path.exists():
            services.remove_upload(upload)


def _import_options(upload: Upload, form: DatasetForm) -> ImportOptions:
    if form.encoding is not None and form.encoding not in files.ENCODINGS:
        there = ", ".join(files.ENCODINGS)
        raise FormatError(f"Unsupported encoding “{form.encoding[:40]}”. Use {there}.")
    quoting = None if form.quoting == "auto" else Quoting(form.quoting)
    read = ReadOptions(encoding=form.encoding, quoting=quoting, sheet=form.sheet or None)
    first = upload.files[0]["name"]
    layout = files.detect_layout(upload.path, name=first, options=read)
    if form.sheet and form.sheet != layout.sheet:
        there = ", ".join(f"“{name}”" for name in layout.sheets[:20])
        raise FormatError(
            f"No sheet “{form.sheet[:100]}”. Available sheets: {there}."
            if there
            else "Only an Excel file has sheets."
        )
    _check_ignored(form.ignored_columns, layout)
    guess = files.detect_mapping(upload.path, layout)
    label = form.label_column if form.label_column is not None else guess.label
    mapping = ColumnMapping(
        form.text_column or guess.text,
        label or None,
        (form.split_column if form.split_column is not None else guess.split) or None,
        second_label=form.second_label_column or None,
        keep_unlabelled=form.keep_unlabelled,
        keep_extra=form.keep_extra,
        ignored=tuple(form.ignored_columns),
    )
    return ImportOptions(
        form.name.strip() or (first if upload.parts else upload.file_name), mapping, read
    )


def _check_ignored(columns: list[str], layout: Layout) -> None:
    """Raises:
    FormatError: the first file has no such column.
    """
    for column in columns:
        if column not in layout.columns:
            there = ", ".join(f"“{name}”" for name in layout.columns[:20])
            raise FormatError(f"No column “{column[:100]}”. Available columns: {there}.")


@router.get("/imports/{uuid:pk}", response=ImportOut)
def get_import(request: HttpRequest, pk: UUID) -> Any:
    return _show_import(_get_upload(request, pk))


@router.delete("/imports/{uuid:pk}", response={204: None})
def cancel_import(request: HttpRequest, pk: UUID) -> Any:
    """Cancel an import and delete its rows."""
    upload = _get_upload(request, pk)
    if upload.is_active:
        importing.cancel_import(upload)
    else:
        services.remove_upload(upload)
    return Status(204, None)


def _get_upload(request: HttpRequest, pk: UUID) -> Upload:
    return get_owned(Upload, request, pk, name="import")
