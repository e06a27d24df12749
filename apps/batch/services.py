"""The door of this room: everything that features do with jobs and their rows.

The functions live in `jobs/`, by what they are about. Nothing here needs the OpenAI SDK.
"""

from apps.batch.jobs.dispatch import servers_to_wake, wake_pump
from apps.batch.jobs.extend import add_rows, continue_refill, retry_failed_rows
from apps.batch.jobs.fill import append_rows, queue_filled
from apps.batch.jobs.job_queries import (
    batches_of,
    count_active_rows,
    owned_batches,
    stalled_batches,
)
from apps.batch.jobs.job_servers import JobServer, servers_of, target_of
from apps.batch.jobs.lifecycle import (
    BatchOptions,
    cancel_batch,
    change_batch,
    create_batch,
    delete_batch,
    pause_batch,
    reset_limits,
    resume_batch,
    update_spec,
)
from apps.batch.jobs.near_duplicates import (
    reject_near_duplicates,
    restore_near_duplicates,
    store_minhashes,
)
from apps.batch.jobs.progress import (
    Progress,
    accepted_rows_since,
    compute_progress,
    count_rows_by_status,
    has_accepted_row,
    reports_cached_tokens,
    rows_of,
    throughput_of,
    wait_reason,
)
from apps.batch.jobs.review import (
    ReviewState,
    accept_row,
    edit_row,
    mark_reviewed,
    reject_row,
    requeue_row,
    set_review_state,
)
from apps.batch.scheduler.concurrency_probe import ProbeResult

__all__ = [
    "BatchOptions",
    "JobServer",
    "ProbeResult",
    "Progress",
    "ReviewState",
    "accept_row",
    "accepted_rows_since",
    "add_rows",
    "append_rows",
    "batches_of",
    "cancel_batch",
    "change_batch",
    "compute_progress",
    "continue_refill",
    "count_active_rows",
    "count_rows_by_status",
    "create_batch",
    "delete_batch",
    "edit_row",
    "has_accepted_row",
    "mark_reviewed",
    "owned_batches",
    "pause_batch",
    "queue_filled",
    "reject_near_duplicates",
    "reject_row",
    "reports_cached_tokens",
    "requeue_row",
    "reset_limits",
    "restore_near_duplicates",
    "resume_batch",
    "retry_failed_rows",
    "rows_of",
    "servers_of",
    "servers_to_wake",
    "set_review_state",
    "stalled_batches",
    "store_minhashes",
    "target_of",
    "throughput_of",
    "update_spec",
    "wait_reason",
    "wake_pump",
]
