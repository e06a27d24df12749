"""`/v1/batches`, as OpenAI's API has it."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema
from ninja.errors import AuthenticationError

from apps.batch.models import BatchStatus, ItemStatus
from apps.batch.services import count_rows_by_status
from apps.core.api import ApiError, owner
from apps.core.models import ApiKey
from apps.gateway.api.files import get_file
from apps.gateway.api.lists import MAX_LIMIT, ListOut, list_page
from apps.gateway.batches import lifecycle
from apps.gateway.models import FILE_PREFIX, FileBatch, ProgramFile

router = Router()
_Status = FileBatch.Status


class BatchIn(Schema):
    input_file_id: str = Field(max_length=100)
    endpoint: str = Field(max_length=200)
    completion_window: str = Field(max_length=10)
    metadata: dict[str, str] | None = Field(None, max_length=16)


class BatchQuery(Schema):
    after: str = ""
    limit: int = Field(20, ge=1, le=MAX_LIMIT)


@router.post("/batches", response=dict[str, Any])
def create_batch(request: HttpRequest, data: BatchIn) -> Any:
    """Run the requests of an uploaded file. A worker checks the file first."""
    metadata = data.metadata or {}
    if any(len(name) > 64 or len(text) > 512 for name, text in metadata.items()):
        detail = "`metadata` has names of up to 64 characters and texts of up to 512."
        raise ApiError(400, "invalid_metadata", detail)
    batch = lifecycle.start_batch(
        _key(request),
        get_file(request, data.input_file_id),
        endpoint=data.endpoint,
        window=data.completion_window,
        metadata=metadata,
    )
    return _batch_object(batch)


@router.get("/batches", response=ListOut[dict[str, Any]])
def list_batches(request: HttpRequest, query: Query[BatchQuery]) -> Any:
    after = get_batch(request, query.after) if query.after else None
    mine = lifecycle.batches_of(owner(request))
    return list_page(mine, _batch_object, after=after, limit=query.limit)


@router.get("/batches/{batch_id}", response=dict[str, Any])
def retrieve_batch(request: HttpRequest, batch_id: str) -> Any:
    return _batch_object(get_batch(request, batch_id))


@router.post("/batches/{batch_id}/cancel", response=dict[str, Any])
def cancel_batch(request: HttpRequest, batch_id: str) -> Any:
    """Cancel a batch. Requests that are done stay in its results."""
    lifecycle.cancel(get_batch(request, batch_id))
    return _batch_object(get_batch(request, batch_id))


def get_batch(request: HttpRequest, batch_id: str) -> FileBatch:
    """Return a batch of who asks.

    Raises:
        ApiError: they have no such batch.
    """
    found = lifecycle.find_batch(owner(request), batch_id)
    if found is None:
        raise ApiError(404, "not_found", f"You have no batch “{batch_id[:60]}”.")
    return found


def _key(request: HttpRequest) -> ApiKey:
    key = ApiKey.find(request.headers["Authorization"].partition(" ")[2].strip())
    if key is None:  # revoked a moment ago
        raise AuthenticationError
    return key


def _batch_object(batch: FileBatch) -> dict[str, Any]:
    ended = _seconds(batch.ended)
    status = _status(batch)
    return {
        "id": batch.public_id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
        "input_file_id": FILE_PREFIX + batch.input_key.hex,
        "completion_window": batch.window,
        "status": status,
        "output_file_id": _file_id(batch.output_file),
        "error_file_id": _file_id(batch.error_file),
        "created_at": _seconds(batch.created),
        "in_progress_at": _seconds(batch.started),
        "expires_at": _seconds(batch.expires),
        "cancelling_at": _seconds(batch.cancelled),
        **{f"{one}_at": ended if status == one else None for one in _ENDED},
        "request_counts": _counts(batch),
        "metadata": batch.metadata or None,
    }


_ENDED = (_Status.COMPLETED, _Status.FAILED, _Status.EXPIRED, _Status.CANCELLED)


def _status(batch: FileBatch) -> str:
    if batch.status != _Status.IN_PROGRESS:
        return batch.status
    if batch.cancelled:
        return "cancelling"
    job = batch.job
    is_over = job is None or job.status in (BatchStatus.DONE, BatchStatus.FAILED)
    return "finalizing" if is_over else _Status.IN_PROGRESS


def _counts(batch: FileBatch) -> dict[str, int]:
    completed, failed = batch.completed, batch.failed
    if batch.status == _Status.IN_PROGRESS and batch.job is not None:
        counts = count_rows_by_status([batch.job])[batch.job.pk]
        completed = counts[ItemStatus.ACCEPTED]
        failed = counts[ItemStatus.REJECTED] + counts[ItemStatus.FAILED]
    return {"total": batch.requests, "completed": completed, "failed": failed}


def _seconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())


def _file_id(file: ProgramFile | None) -> str | None:
    return None if file is None else file.public_id
