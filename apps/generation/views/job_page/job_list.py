"""The list beside every page of jobs: those at work, those that ended, and recipes."""

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest

from apps.batch import services as batches
from apps.batch.models import ACTIVE, BatchStatus, ItemStatus
from apps.generation.figures.job_state import JobState, job_state
from apps.generation.models import Job
from apps.generation.recipe.library import versions

JOBS_A_PAGE = 20
OPEN = (*ACTIVE, BatchStatus.PAUSED)
MAX_SEARCH = 200


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job in the list."""

    job: Job
    state: JobState
    accepted: int
    finished: int

    @property
    def wanted(self) -> int:
        return self.job.batch.wanted

    @property
    def is_open(self) -> bool:
        return self.job.batch.status in OPEN

    @property
    def done_percent(self) -> int:
        """For the ring: accepted rows of those wanted, else finished ones."""
        done = self.accepted if self.job.batch.goal is not None else self.finished
        return min(100, round(100 * done / self.wanted)) if self.wanted else 0

    @property
    def seconds_left(self) -> float | None:
        """At the speed of the whole job; None where nothing is known yet."""
        batch = self.job.batch
        done = self.accepted if batch.goal is not None else self.finished
        if batch.status != BatchStatus.RUNNING or not done or not batch.active_seconds:
            return None
        return max(0, self.wanted - done) * batch.active_seconds / done


def job_list(request: HttpRequest, current: Job | None = None) -> dict[str, Any]:
    """Build the context of the list. Its specs are not read: one may be megabytes.

    Args:
        current: the job that is open.
    """
    text = request.GET.get("find", "").strip()[:MAX_SEARCH]
    mine = Job.objects.owned_by(request.user).select_related("batch").defer("batch__spec")
    if text:
        mine = mine.filter(name__icontains=text)
    page = Paginator(mine, JOBS_A_PAGE).get_page(request.GET.get("page"))
    jobs = list(page.object_list)
    counts = batches.count_rows_by_status([job.batch for job in jobs])
    lines = [_line(job, counts[job.batch_id]) for job in jobs]
    recipes = list(versions.saved_recipes_of(request.user))
    if text:
        recipes = [recipe for recipe in recipes if text.casefold() in recipe.name.casefold()]
    return {
        "list_page": page,
        "open_jobs": [line for line in lines if line.is_open],
        "ended_jobs": [line for line in lines if not line.is_open],
        "list_recipes": recipes,
        "list_current": current,
        "list_runs": any(line.job.batch.status in ACTIVE for line in lines),
        "find": text,
    }


def _line(job: Job, counts: dict[str, int]) -> JobLine:
    finished = sum(counts[status] for status in (ItemStatus.ACCEPTED, ItemStatus.REJECTED))
    state = job_state(job.batch.status, counts, job.batch.wanted)
    return JobLine(job, state, counts[ItemStatus.ACCEPTED], finished + counts[ItemStatus.FAILED])
