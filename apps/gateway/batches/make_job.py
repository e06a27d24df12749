"""Makes the job of a batch, and its rows piece by piece: others write between two pieces.

A worker that takes over from one that died goes on after the last row that is stored.
"""

from collections.abc import Iterator
from typing import BinaryIO

from django.db.models import QuerySet
from django.utils import timezone

from apps.batch.models import Batch
from apps.batch.services import (
    BatchOptions,
    append_rows,
    create_batch,
    queue_filled,
    wake_pump,
)
from apps.core.models import ApiKey, KeyLane
from apps.core.schemas.json_types import JsonObject
from apps.gateway.batches.batch_spec import HANDLER, BatchSpec
from apps.gateway.batches.input_file import BatchRequest, FileSummary, LineReader
from apps.gateway.limits.answers import may_use_everywhere
from apps.gateway.limits.limits import each
from apps.gateway.models import FileBatch
from apps.gateway.routes import ROUTES
from apps.servers.services import Target
from apps.work.errors import LeaseLost
from apps.work.services import HeldTask

# Of one transaction.
PIECE_ROWS = 1_000
PIECE_BYTES = 4 * 1024**2
READING = "Its file is being read."


def waiting(held: HeldTask) -> QuerySet[FileBatch]:
    """Query the batch of a task, which someone may cancel meanwhile."""
    return FileBatch.objects.filter(pk=held.subject, status=FileBatch.Status.VALIDATING)


def create_job(
    held: HeldTask,
    batch: FileBatch,
    key: ApiKey,
    summary: FileSummary,
    target: Target,
    own_model: str = "",
) -> Batch:
    """Create the job of a batch without its rows: no pump works on it yet.

    Args:
        target: the server that answers, or that `own_model` asks, see `BatchSpec`.
    """
    lane = KeyLane.IDLE if key.lane == KeyLane.IDLE else KeyLane.BATCH
    spec = BatchSpec(
        key.pk, batch.endpoint, summary.max_tokens, batch.expires.timestamp(), lane.value, own_model
    )
    name = batch.input_file.name if batch.input_file else "Batch"
    with held.fence():
        _check_waiting(held)
        batch.job = create_batch(
            owner=batch.owner,
            server=target.server,
            model=target.model,
            name=f"Batch {name[:90]} · key {key.name}",
            handler=HANDLER,
            spec=spec.as_dict(),
            inputs=0,
            options=BatchOptions(
                width=_width(key),
                all_servers=not own_model
                and _may_spread(batch.endpoint, key, summary.model, target),
                rows_follow=READING,
            ),
        )
        batch.save(update_fields=["job"])
    return batch.job


def fill_job(held: HeldTask, batch: FileBatch, job: Batch, file: BinaryIO) -> None:
    """Store the requests of a valid file that are not rows yet, and start the job.

    Raises:
        LeaseLost: another worker does it, or the batch was cancelled.
    """
    for piece in _pieces(file, batch.endpoint, job.total):
        with held.fence():
            _check_waiting(held)
            append_rows(job, piece)
    with held.fence():
        _check_waiting(held)
        queue_filled(job)
        batch.status, batch.started = FileBatch.Status.IN_PROGRESS, timezone.now()
        batch.requests = job.total
        batch.save(update_fields=["status", "started", "requests"])
        wake_pump(job.server_id)


def _check_waiting(held: HeldTask) -> None:
    if not waiting(held).select_for_update().exists():
        raise LeaseLost


def _may_spread(endpoint: str, key: ApiKey, name: str, target: Target) -> bool:
    """True if other servers of the same model may take requests of the batch.

    Not where the program named a server, nor where the key may use the model there alone. Whether
    it is the same model is checked by a question to it, which a model of embeddings cannot answer.
    """
    is_open = target.server.model(name) is not None
    answers = not ROUTES[endpoint].embeds
    return is_open and answers and may_use_everywhere(key, target.server, target.model)


def _width(key: ApiKey) -> int | None:
    """Return how many requests may be in flight: more would take slots only to be refused."""
    return min((own.in_flight for _, own in each(key) if own.in_flight), default=None)


def _pieces(file: BinaryIO, endpoint: str, skipped: int) -> Iterator[list[JsonObject]]:
    """Yield the inputs of rows, as many as one transaction stores.

    Args:
        skipped: how many are rows already.
    """
    piece: list[JsonObject] = []
    size = 0
    found = (one for one in LineReader(endpoint).read(file) if isinstance(one, BatchRequest))
    for number, request in enumerate(found):
        if number < skipped:
            continue
        piece.append({"custom_id": request.custom_id, "body": request.body})
        size += request.size
        if len(piece) >= PIECE_ROWS or size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
