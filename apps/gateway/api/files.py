"""`/v1/files`, as OpenAI's API has it."""

from datetime import timedelta
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, File, Form, Query, Router, Schema
from ninja.files import UploadedFile

from apps.core.api import ApiError, owner
from apps.core.quotas import limited
from apps.gateway.api.lists import MAX_LIMIT, ListOut, list_page
from apps.gateway.files import store
from apps.gateway.files.content import content_response
from apps.gateway.models import ProgramFile

router = Router()

SHORTEST, LONGEST = 3600, 30 * 24 * 3600


class FileForm(Schema):
    purpose: str
    expires_after_anchor: Literal["created_at"] = Field("created_at", alias="expires_after[anchor]")
    expires_after_seconds: int = Field(
        LONGEST, ge=SHORTEST, le=LONGEST, alias="expires_after[seconds]"
    )


class FileOut(Schema):
    id: str
    object: str = "file"
    bytes: int
    created_at: int
    expires_at: int | None
    filename: str
    purpose: str
    status: str = "processed"


class Deleted(Schema):
    id: str
    object: str = "file"
    deleted: bool = True


class FileQuery(Schema):
    purpose: str = ""
    after: str = ""
    limit: int = MAX_LIMIT
    order: Literal["asc", "desc"] = "desc"


@router.post("/files", response=FileOut)
@limited("readings")
def upload_file(request: HttpRequest, form: Form[FileForm], file: File[UploadedFile]) -> Any:
    """Store a file of requests for a batch. It is deleted after 30 days, or sooner if asked."""
    if form.purpose != ProgramFile.Purpose.BATCH:
        detail = f"The purpose “{form.purpose[:50]}” is not known here. Only “batch” is."
        raise ApiError(400, "unknown_purpose", detail)
    stored = store.store_file(
        owner(request),
        file.name or "",
        file.chunks(),
        lifetime=timedelta(seconds=form.expires_after_seconds),
    )
    return _file_object(stored)


@router.get("/files", response=ListOut[FileOut])
def list_files(request: HttpRequest, query: Query[FileQuery]) -> Any:
    mine = store.files_of(owner(request))
    if query.purpose:
        mine = mine.filter(purpose=query.purpose)
    after = get_file(request, query.after) if query.after else None
    newest_first = query.order == "desc"
    return list_page(mine, _file_object, after=after, limit=query.limit, newest_first=newest_first)


@router.get("/files/{file_id}", response=FileOut)
def retrieve_file(request: HttpRequest, file_id: str) -> Any:
    return _file_object(get_file(request, file_id))


@router.delete("/files/{file_id}", response=Deleted)
def delete_file(request: HttpRequest, file_id: str) -> Any:
    found = get_file(request, file_id)
    store.remove_file(found)
    return {"id": found.public_id}


@router.get("/files/{file_id}/content")
def file_content(request: HttpRequest, file_id: str) -> Any:
    return content_response(get_file(request, file_id))


def get_file(request: HttpRequest, file_id: str) -> ProgramFile:
    """Return a file of who asks.

    Raises:
        ApiError: they have no such file.
    """
    found = store.find_file(owner(request), file_id)
    if found is None:
        raise ApiError(404, "not_found", f"You have no file “{file_id[:60]}”.")
    return found


def _file_object(file: ProgramFile) -> dict[str, Any]:
    return {
        "id": file.public_id,
        "bytes": file.size,
        "created_at": int(file.created.timestamp()),
        "expires_at": int(file.expires.timestamp()) if file.expires else None,
        "filename": file.name,
        "purpose": file.purpose,
    }
