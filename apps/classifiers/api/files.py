"""Files to be classified, and classifiers in files, over HTTP."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from ninja import Field, File, Form, Schema, Status
from ninja.files import UploadedFile

from apps.classifiers import services
from apps.classifiers.api.classifiers import get_mine, router
from apps.classifiers.models import FilePrediction
from apps.classifiers.prediction import file_queue
from apps.classifiers.transfer import create_imported
from apps.classifiers.transfer.imports import check_size
from apps.classifiers.views.files import download_response
from apps.core.api import ApiError, NotFound, owner
from apps.core.quotas import limited
from apps.files import FormatError


class FileForm(Schema):
    column: str = Field(
        "", max_length=200, description="Column with the texts. Empty: detect automatically."
    )
    format: str = Field("csv", pattern="^(csv|jsonl)$")


class FileOut(Schema):
    id: int
    status: str
    error: str
    rows: int = Field(description="Rows processed so far.")
    total: int
    counts: dict[str, int] = Field(description="Row counts by label or threshold result.")
    version: int
    download: str | None


class Imported(Schema):
    id: int
    warnings: list[str] = Field(description="Reasons why it may be unable to predict here.")


@router.post("/classifiers/import", response={201: Imported})
@limited("readings")
def import_classifier(request: HttpRequest, file: File[UploadedFile]) -> Any:
    """Import a classifier that was exported from Workbench as .json or .npz."""
    check_size(file.size or 0)
    made, warnings = create_imported.import_classifier(owner(request), file.read())
    return Status(201, {"id": made.pk, "warnings": warnings})


@router.post("/classifiers/{int:pk}/predict-file", response={202: FileOut})
@limited("readings")
def predict_file(
    request: HttpRequest, pk: int, form: Form[FileForm], file: File[UploadedFile]
) -> Any:
    """Label a file in the background. Poll until its status is `ready`, then download it."""
    try:
        made = file_queue.queue_file(
            get_mine(request, pk), file, column=form.column, form=form.format
        )
    except FormatError as error:
        raise ApiError(422, "invalid", str(error)) from error
    return Status(202, _file(request, made))


@router.get("/classifiers/{int:pk}/predict-file/{int:file}", response=FileOut)
def get_file(request: HttpRequest, pk: int, file: int) -> Any:
    return _file(request, _get_file(request, pk, file))


@router.post("/classifiers/{int:pk}/predict-file/{int:file}/cancel", response={202: None})
def cancel_file(request: HttpRequest, pk: int, file: int) -> Any:
    services.cancel(_get_file(request, pk, file))
    return Status(202, None)


@router.get("/classifiers/{int:pk}/predict-file/{int:file}/download", url_name="file_download")
def download_file(request: HttpRequest, pk: int, file: int) -> Any:
    """The rows with label, confidence, the three likeliest, gate, and a note where one has none."""
    found = _get_file(request, pk, file)
    if not found.is_ready:
        raise ApiError(409, "not_ready", f"The file is {found.status}. Wait until it is ready.")
    return download_response(found)


def _get_file(request: HttpRequest, pk: int, file: int) -> FilePrediction:
    found = get_mine(request, pk).files.select_related("run", "task").filter(pk=file).first()
    if found is None:
        raise NotFound("file")
    return found


def _file(request: HttpRequest, file: FilePrediction) -> dict[str, Any]:
    path = reverse("api-1:file_download", kwargs={"pk": file.classifier_id, "file": file.pk})
    return {
        "id": file.pk,
        "status": file.status,
        "error": file.error,
        "rows": file.done,
        "total": file.total,
        "counts": file.counts,
        "version": file.run.number,
        "download": request.build_absolute_uri(path) if file.is_ready else None,
    }
