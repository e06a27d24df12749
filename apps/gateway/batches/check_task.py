"""The task that reads the file of a batch and makes rows of its requests, or lists its errors."""

import asyncio
from dataclasses import asdict

from django.utils import timezone

from apps.batch.services import cancel_batch
from apps.core.label_models.label_model import LabelModelError
from apps.core.label_models.registry import provider_of
from apps.core.models import ApiKey
from apps.gateway.batches.input_file import BatchFileInvalid, LineError, check_file
from apps.gateway.batches.make_job import create_job, fill_job, waiting
from apps.gateway.errors import GatewayError, unknown_model
from apps.gateway.limits.answers import allowed_targets
from apps.gateway.models import FileBatch
from apps.gateway.own_models.answer import COMPLETIONS, find_own_model
from apps.gateway.pools.look_ups import read_servers
from apps.gateway.targets import has_model, having, model_names, refreshed
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
    """Check a batch and start it."""
    batch = waiting(held).select_related("input_file", "owner", "job").first()
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


def _fail(held: HeldTask, errors: list[LineError]) -> None:
    with held.fence():
        for batch in waiting(held).select_related("job"):
            if batch.job is not None:  # it has some of its rows
                cancel_batch(batch.job)
        waiting(held).update(
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
            job = batch.job
            if job is None:
                summary = check_file(file, batch.endpoint)
                target, own_model = _find_target(summary.model, batch.endpoint, key)
                job = create_job(held, batch, key, summary, target, own_model)
                file.seek(0)
            fill_job(held, batch, job, file)
    except FileNotFoundError:
        raise BatchFileInvalid([FILE_GONE]) from None


def _find_key(batch: FileBatch) -> ApiKey:
    working = ApiKey.objects.working().select_related("user", "user__program_limits")
    key = working.filter(pk=batch.api_key_id).first() if batch.api_key_id else None
    if key is None:
        raise BatchFileInvalid([KEY_GONE])
    return key


def _find_target(model: str, endpoint: str, key: ApiKey) -> tuple[Target, str]:
    """Return the server that answers, and the classifier that asks it, "" where none does."""
    try:
        if (own := _find_own_model(model, endpoint, key)) is not None:
            return own
        return _find_server(model, key), ""
    except GatewayError as error:
        refused = LineError(error.code, str(error), param="body.model")
        raise BatchFileInvalid([refused]) from None


def _find_own_model(name: str, endpoint: str, key: ApiKey) -> tuple[Target, str] | None:
    """Return a classifier and the server that it asks; None where the model is of a server.

    Raises:
        GatewayError: the key may not use it, or it cannot answer such requests.
    """
    if provider_of(name) is None:
        return None
    try:
        provider, model = find_own_model(key, name)
    except GatewayError:
        if has_model(read_servers(), name):
            return None
        raise
    if endpoint != COMPLETIONS:
        detail = f"In batches a classifier answers {COMPLETIONS}, not {endpoint}."
        raise GatewayError(400, "wrong_route", detail)
    try:
        server_id, asked = provider.server_of(key.user_id, model)
    except LabelModelError as error:
        raise GatewayError(error.status, error.code, str(error)) from error
    return Target(Server.objects.get(pk=server_id), asked), model.id


def _find_server(model: str, key: ApiKey) -> Target:
    """Return a server that has the model: one that is ready, where there is one.

    Raises:
        GatewayError: none has it, or none that the key may use.
    """
    servers = read_servers()
    if not (found := having(servers, model)):
        servers = asyncio.run(_refreshed(servers))
        found = having(servers, model)
    if not found:
        raise unknown_model(model, model_names(servers))
    found.sort(key=lambda target: target.server.state != State.READY)
    return allowed_targets(found, key)[0]


async def _refreshed(servers: list[Server]) -> list[Server]:
    try:
        return await refreshed(servers)
    finally:
        await close_clients()
        await close_async_redis()
