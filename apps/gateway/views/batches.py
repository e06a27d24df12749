"""The page of a program's batch: how far it is, its results, and pausing or cancelling it."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.batch import services as jobs
from apps.batch.errors import WrongState
from apps.batch.models import ACTIVE, Batch, BatchStatus, ItemStatus
from apps.core.api import owner
from apps.gateway.batches import lifecycle
from apps.gateway.errors import GatewayError
from apps.gateway.files.content import content_response
from apps.gateway.models import FileBatch

_Status = FileBatch.Status


@dataclass(frozen=True, slots=True)
class State:
    """The state of a batch in a word."""

    word: str
    tone: str
    """Colour of its tag: accent, good, warn, bad or ""."""


_ENDED = {
    _Status.COMPLETED: State("Done", "good"),
    _Status.EXPIRED: State("Expired", "warn"),
    _Status.CANCELLED: State("Cancelled", "warn"),
    _Status.FAILED: State("Failed", "bad"),
}
_RUNNING = {
    BatchStatus.QUEUED: State("Queued", ""),
    BatchStatus.RUNNING: State("Running", "accent"),
    BatchStatus.PAUSED: State("Paused", "warn"),
}
_READING = State("Reading file…", "accent")
_ENDING = State("Writing results…", "accent")


@require_safe
def batch(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a batch; for htmx the part that changes while it runs."""
    found = _find(request, pk)
    is_part = request.headers.get("HX-Request") and not request.headers.get("HX-Boosted")
    template = "gateway/_batch_progress.html" if is_part else "gateway/batch.html"
    return render(request, template, _context(found))


@require_POST
def act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Pause, resume, cancel."""
    found = _find(request, pk)
    assert found.job is not None
    try:
        match action:
            case "pause":
                jobs.pause_batch(found.job)
                messages.success(request, "Paused. Requests that are being answered will finish.")
            case "resume" if found.status != _Status.VALIDATING:
                jobs.resume_batch(found.job)
                messages.success(request, "Batch resumed.")
            case "cancel":
                lifecycle.cancel(found)
                messages.success(request, "Batch cancelled. Its answers are kept.")
            case _:
                raise Http404
    except (WrongState, GatewayError) as error:
        messages.error(request, str(error))
    jobs.wake_pump(found.job.server_id)
    return redirect("gateway:batch", pk)


@require_safe
def results(request: HttpRequest, pk: int, kind: str) -> HttpResponseBase:
    """Send a file of results."""
    found = _find(request, pk)
    file = {"output": found.output_file, "errors": found.error_file}.get(kind)
    if file is None:
        raise Http404
    answer = content_response(file)
    answer["Content-Disposition"] = f'attachment; filename="{file.name}"'
    return answer


def _find(request: HttpRequest, pk: int) -> FileBatch:
    mine = lifecycle.batches_of(owner(request)).select_related("job__server", "api_key")
    return get_object_or_404(mine, job=pk)


def _context(found: FileBatch) -> dict[str, Any]:
    job = found.job
    assert job is not None
    is_reading = found.status == _Status.VALIDATING
    is_running = found.status == _Status.IN_PROGRESS
    progress = jobs.compute_progress(job)
    counts = progress.counts
    errors = counts[ItemStatus.REJECTED] + counts[ItemStatus.FAILED]
    return {
        "batch": found,
        "job": job,
        "state": _state(found, job),
        "progress": progress,
        "servers": jobs.servers_of(job),
        "own_model": job.spec.get("own_model", ""),
        "requests": job.total if is_reading else found.requests,
        "answered": counts[ItemStatus.ACCEPTED],
        "errors": errors,
        "unsent": progress.open if found.ended else 0,
        "reason": jobs.wait_reason(job) if is_running else "",
        "live": is_reading or (is_running and job.status != BatchStatus.PAUSED),
        "can_pause": is_running and job.status in ACTIVE,
        "can_resume": is_running and job.status == BatchStatus.PAUSED,
        "can_cancel": is_reading or (is_running and not found.cancelled),
    }


def _state(found: FileBatch, job: Batch) -> State:
    if found.status == _Status.VALIDATING:
        return _READING
    with suppress(KeyError):
        return _ENDED[_Status(found.status)]
    return _ENDING if found.cancelled else _RUNNING.get(BatchStatus(job.status), _ENDING)
