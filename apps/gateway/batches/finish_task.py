"""The task that writes the results of a batch whose requests are done, cancelled or too late."""

from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta

from django.utils import timezone

from apps.batch.errors import WrongState
from apps.batch.models import Batch, BatchStatus, ItemStatus
from apps.batch.services import cancel_batch, rows_of
from apps.gateway.batches.input_file import LineError
from apps.gateway.batches.lifecycle import ENDED
from apps.gateway.batches.request_row import EXPIRED, EXPIRED_TEXT
from apps.gateway.batches.result_lines import Results, write_results
from apps.gateway.files.result_file import ResultFile
from apps.gateway.models import FileBatch
from apps.work.services import HeldTask

# Requests in flight are closed within a second, and their rows written.
CLOSING = timedelta(seconds=60)
_Status = FileBatch.Status
JOB_GONE = LineError("job_deleted", "The job of the batch was deleted. Create the batch again.")
CANCELLED = "batch_cancelled", "The batch was cancelled before the request was done."


def run(held: HeldTask) -> None:
    """Write the files of results, and the last status of the batch; nothing where it goes on."""
    found = FileBatch.objects.select_related("job", "owner").filter(
        pk=held.subject, status=_Status.IN_PROGRESS
    )
    if (batch := found.first()) is None:
        return
    if batch.job is None:
        _end(held, batch, _Status.FAILED, [JOB_GONE])
    elif _has_ended(batch, batch.job):
        _finish(held, batch, batch.job)


def _has_ended(batch: FileBatch, job: Batch) -> bool:
    """True if no row is sent any more. Stops the job where the time of the batch is over."""
    if job.status not in ENDED:
        if batch.expires > timezone.now():
            return False
        with suppress(WrongState):  # it ended meanwhile
            cancel_batch(job)
        job.refresh_from_db()
    is_closing = job.finished is not None and job.finished > timezone.now() - CLOSING
    return not (is_closing and rows_of(job.pk).filter(status=ItemStatus.RUNNING).exists())


def _finish(held: HeldTask, batch: FileBatch, job: Batch) -> None:
    status, *unsent = _when_unsent(batch, job)
    name = batch.public_id
    with (
        ResultFile(batch.owner, f"{name}_output.jsonl") as output,
        ResultFile(batch.owner, f"{name}_errors.jsonl") as errors,
    ):
        code, message = unsent
        results = write_results(batch, job.pk, output, errors, (code, message))
        with held.fence():
            batch.output_file, batch.error_file = output.save(), errors.save()
            batch.completed, batch.failed = results.completed, results.failed
            batch.save(update_fields=["output_file", "error_file", "completed", "failed"])
            status = _last_status(batch, results, status)
            why = [LineError(code, message)] if status == _Status.FAILED else []
            _end(held, batch, status, why)


def _when_unsent(batch: FileBatch, job: Batch) -> tuple[_Status, str, str]:
    """Return the status of the batch if a row was not done, and the error of such rows."""
    if batch.cancelled:
        return _Status.CANCELLED, *CANCELLED
    if job.status == BatchStatus.FAILED:
        return _Status.FAILED, "job_failed", job.reason
    if batch.expires <= timezone.now():
        return _Status.EXPIRED, EXPIRED, EXPIRED_TEXT
    return _Status.CANCELLED, *CANCELLED  # where jobs are listed


def _last_status(batch: FileBatch, results: Results, when_unsent: _Status) -> _Status:
    if batch.cancelled:
        return _Status.CANCELLED
    if results.unsent:
        return when_unsent
    return _Status.EXPIRED if results.late else _Status.COMPLETED


def _end(held: HeldTask, batch: FileBatch, status: _Status, errors: list[LineError]) -> None:
    with held.fence():
        batch.status, batch.ended = status, timezone.now()
        batch.errors = [asdict(error) for error in errors]
        batch.save(update_fields=["status", "ended", "errors"])
