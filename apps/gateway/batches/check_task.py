"""The task that reads the file of a batch and makes rows of its requests, or lists its errors."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from typing import BinaryIO

from django.db.models import QuerySet
from django.utils import timezone

from apps.batch.services import BatchOptions, create_batch, wake_pump
from apps.core.models import ApiKey, KeyLane
from apps.core.schemas.json_types import JsonObject
from apps.gateway.batches.input_file import (
    BatchFileInvalid,
    BatchRequest,
    FileSummary,
    LineError,
    LineReader,
    check_file,
)
from apps.gateway.batches.request_row import HANDLER, BatchSpec
from apps.gateway.errors import GatewayError, unknown_model
from apps.gateway.limits.answers import allowed_targets
from apps.gateway.limits.limits import each
from apps.gateway.models import FileBatch
from apps.gateway.targets import having, model_names, read_servers, refreshed
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server, State
from apps.servers.services import Target
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.services import MAX_ATTEMPTS, HeldTask

FILE_GONE = LineError("file_not_found", "The input file was deleted. Upload it again.")
WORKER_DIED = LineError(
    "internal_error", f"The worker crashed {MAX_ATTEMPTS} times on this file. See its log."
)
BROKEN = LineError("internal_error", "Workbench error. Details are in the worker log.")
KEY_GONE = LineError("invalid_api_key", "The API key of the batch was revoked or has expired.")


def run(held: HeldTask) -> None:
    """Check a batch and start it. Its rows are made in the transaction that says so."""
    batch = _waiting(held).select_related("input_file", "owner").first()
    if batch is None:
        return
    try:
        if held.is_worn_out:
            raise BatchFileInvalid([WORKER_DIED])
        _start(batch, held)
    except BatchFileInvalid as invalid:
        _fail(held, invalid.errors)
    except (LeaseLost, TaskCancelled):
        raise
    except Exception:
        _fail(held, [BROKEN])
        raise


def _waiting(held: HeldTask) -> QuerySet[FileBatch]:
    """Query the batch of a task, which someone may cancel meanwhile."""
    return FileBatch.objects.filter(pk=held.subject, status=FileBatch.Status.VALIDATING)


def _fail(held: HeldTask, errors: list[LineError]) -> None:
    with held.fence():
        _waiting(held).update(
            status=FileBatch.Status.FAILED,
            ended=timezone.now(),
            errors=[asdict(error) for error in errors],
        )


def _start(batch: FileBatch, held: HeldTask) -> None:
    key = _find_key(batch)
    try:
        if batch.input_file is None:
            raise FileNotFoundError
        with batch.input_file.path.open("rb") as file:
            summary = check_file(file, batch.endpoint)
            target = _find_target(summary.model, key)
            file.seek(0)
            with held.fence():
                if _waiting(held).select_for_update().exists():
                    _create_job(batch, key, summary, target, file)
    except FileNotFoundError:
        raise BatchFileInvalid([FILE_GONE]) from None


def _find_key(batch: FileBatch) -> ApiKey:
    working = ApiKey.objects.working().select_related("user", "user__program_limits")
    key = working.filter(pk=batch.api_key_id).first() if batch.api_key_id else None
    if key is None:
        raise BatchFileInvalid([KEY_GONE])
    return key


def _find_target(model: str, key: ApiKey) -> Target:
    """Return a server that has the model: one that is ready, where there is one."""
    servers = read_servers()
    try:
        if not (found := having(servers, model)):
            servers = asyncio.run(_refreshed(servers))
            found = having(servers, model)
        if not found:
            raise unknown_model(model, model_names(servers))
        found.sort(key=lambda target: target.server.state != State.READY)
        return allowed_targets(found, key)[0]
    except GatewayError as error:
        refused = LineError(error.code, str(error), param="body.model")
        raise BatchFileInvalid([refused]) from None


async def _refreshed(servers: list[Server]) -> list[Server]:
    try:
        return await refreshed(servers)
    finally:
        await close_clients()
        await close_async_redis()


def _create_job(
    batch: FileBatch, key: ApiKey, summary: FileSummary, target: Target, file: BinaryIO
) -> None:
    lane = KeyLane.IDLE if key.lane == KeyLane.IDLE else KeyLane.BATCH
    spec = BatchSpec(
        key.pk, batch.endpoint, summary.max_tokens, batch.expires.timestamp(), lane.value
    )
    name = batch.input_file.name if batch.input_file else "Batch"
    batch.job = create_batch(
        owner=batch.owner,
        server=target.server,
        model=target.model,
        name=f"Batch {name[:90]} · key {key.name}",
        handler=HANDLER,
        spec=spec.as_dict(),
        inputs=_inputs(file, batch.endpoint),
        options=BatchOptions(width=_width(key)),
    )
    batch.status, batch.started = FileBatch.Status.IN_PROGRESS, timezone.now()
    batch.requests = batch.job.total
    batch.save(update_fields=["job", "status", "started", "requests"])
    wake_pump(target.server.pk)


def _width(key: ApiKey) -> int | None:
    """Return how many requests may be in flight: more would take slots only to be refused."""
    return min((own.in_flight for _, own in each(key) if own.in_flight), default=None)


def _inputs(file: BinaryIO, endpoint: str) -> Iterator[JsonObject]:
    for found in LineReader(endpoint).read(file):
        if isinstance(found, BatchRequest):
            yield {"custom_id": found.custom_id, "body": found.body}
