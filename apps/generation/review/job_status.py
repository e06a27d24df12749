"""Status of a job for its page: figures, possible actions, and why fewer rows run than could."""

from typing import Any

from apps.batch import services as batches
from apps.batch.handlers import find_handler
from apps.batch.models import ACTIVE, SLOWED_DOWN, Batch, BatchStatus, ItemStatus
from apps.batch.services import ProbeResult
from apps.generation.figures.time_left import time_left
from apps.generation.models import Job
from apps.generation.review.reasons import label_of
from apps.llm.permits import batch_wait_reason, describe_backoff
from apps.servers.models import Server

MEASURING = (
    "The server does not report how many requests it takes at once. Workbench measures it while "
    "the job runs. You can set it on the Servers page."
)


def job_status(job: Job) -> dict[str, Any]:
    """Collect the context of the live part of a job's page."""
    progress = batches.compute_progress(job.batch)
    batch, status = job.batch, job.batch.status
    open_rows = status not in (BatchStatus.DONE, BatchStatus.CANCELLED)
    accepted = progress.counts[ItemStatus.ACCEPTED]
    spare = max(0, progress.total - progress.finished)
    running = progress.counts[ItemStatus.RUNNING]
    waits = status == BatchStatus.RUNNING and progress.counts[ItemStatus.PENDING] > 0
    probe = batches.throughput_of(batch.pk).probe
    reason = batches.wait_reason(batch)
    return {
        "job": job,
        "reason": reason,
        "rate_limited": reason.startswith(SLOWED_DOWN),
        "servers": batches.servers_of(batch),
        "progress": progress,
        "time_left": time_left(progress, batch.active_seconds),
        "extra": max(0, accepted - progress.wanted) if batch.goal is not None else 0,
        "done": min(accepted, progress.wanted) if batch.goal is not None else progress.finished,
        # Of a job that refills the bar ends where its goal is, or where its tries are.
        "bar_total": max(progress.finished + spare, 1),
        "reasons": [
            (row_status, code, label_of(code), rows) for row_status, code, rows in progress.reasons
        ],
        # The last rows of a job that was cancelled are still being closed for a moment.
        "live": status in ACTIVE or running > 0,
        "fewer": why_fewer(batch, running) if waits and batch.server else "",
        "probe": describe_probe(probe, batch.width) if probe else "",
        "can": {
            "pause": status in ACTIVE,
            "resume": status in (BatchStatus.PAUSED, BatchStatus.FAILED),
            "cancel": open_rows,
            "retry": status != BatchStatus.CANCELLED and progress.counts[ItemStatus.FAILED] > 0,
            "add": status != BatchStatus.CANCELLED,
        },
    }


def describe_probe(probe: ProbeResult, fixed: int | None) -> str:
    """Describe the measured concurrency and what follows from it.

    Args:
        fixed: max rows in parallel as the owner set it.
    """
    rates = ", ".join(
        f"{width} in parallel {rate:,.0f}" for width, rate in sorted(probe.rates.items())
    )
    measured = f"Measured at the start (tokens/s): {rates}."
    if fixed is not None and fixed != probe.best:
        return f"{measured} Best: {probe.best} in parallel. You set {fixed}."
    if probe.limit is not None:
        return (
            f"{measured} Best: {probe.best} in parallel, which is now used. You can change this "
            "under “Limits”."
        )
    return f"{measured} Best: all slots."


def why_fewer(batch: Batch, running: int) -> str:
    """Explain why fewer rows run than the server has slots; "" if all slots are used."""
    server = batch.server
    assert server is not None
    slots = server.slots_of(batch.model)
    if running >= slots:
        return MEASURING if server.assumes_slots(batch.model) else ""
    if batch.width is not None and running >= batch.width:
        return f"Max rows in parallel is set to {batch.width}. The server has {slots} slots."
    if sentence := _too_large(batch, server, slots):
        return sentence
    match batch_wait_reason(server.pk):
        case "people":
            return "One slot is kept free because someone is chatting."
        case "slots" if running < slots - 1:
            return "Other Workbench requests use the remaining slots."
        case "restarted":
            return "Redis was restarted. The job continues in a second."
        case other:
            return describe_backoff(other)


def _too_large(batch: Batch, server: Server, slots: int) -> str:
    """Explain how many rows fit into a context that all slots share; "" if all fit."""
    pool = server.pool(batch.model)
    tokens = _row_tokens(batch, server)
    if not pool or not tokens or slots * tokens <= pool:
        return ""
    fit = max(1, pool // tokens)
    return (
        f"The server has {slots} slots, but they share one context of {pool:,} tokens. A row needs "
        f"up to {tokens:,} tokens, so only {fit} fit in parallel. Start llama-server with "
        f"-np {slots} and a larger -c, set “Shared KV cache” on the Servers page, or lower max "
        "tokens."
    )


def _row_tokens(batch: Batch, server: Server) -> int:
    handler = find_handler(batch.handler)
    if handler is None:
        return 0
    return handler.max_row_tokens(handler.parse(batch.spec), server.facts_of(batch.model).thinking)
