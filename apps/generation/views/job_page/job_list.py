"""The list beside every page of jobs: those at work, those that ended, and recipes."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.urls import reverse

from apps.batch import services as batches
from apps.batch.handlers import listings
from apps.batch.models import ACTIVE, Batch, BatchStatus, ItemStatus
from apps.core.api import owner
from apps.generation.figures.job_state import JobState, job_state
from apps.generation.models import Job
from apps.generation.recipe.library import versions

JOBS_A_PAGE = 20
LISTED = 10  # of another feature
OPEN = (*ACTIVE, BatchStatus.PAUSED)
MAX_SEARCH = 200


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job in the list."""

    key: int | None
    """Of the job; None for one that is listed for another feature."""
    name: str
    url: str
    batch: Batch
    state: JobState
    accepted: int
    finished: int

    @property
    def wanted(self) -> int:
        return self.batch.wanted

    @property
    def is_open(self) -> bool:
        return self.batch.status in OPEN

    @property
    def done_percent(self) -> int:
        """For the ring: accepted rows of those wanted, else finished ones."""
        done = self.accepted if self.batch.goal is not None else self.finished
        return min(100, round(100 * done / self.wanted)) if self.wanted else 0

    @property
    def seconds_left(self) -> float | None:
        """At the speed of the whole job; None where nothing is known yet."""
        batch = self.batch
        done = self.accepted if batch.goal is not None else self.finished
        if batch.status != BatchStatus.RUNNING or not done or not batch.active_seconds:
            return None
        return max(0, self.wanted - done) * batch.active_seconds / done


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Jobs of another feature, which has their pages."""

    heading: str
    lines: list[JobLine]


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
    lines = [
        _line(
            job.batch,
            counts[job.batch_id],
            job.pk,
            job.name,
            reverse("generation:job", args=[job.pk]),
        )
        for job in jobs
    ]
    groups = _listed_groups(owner(request), text)
    listed = [line for group in groups for line in group.lines]
    recipes = list(versions.saved_recipes_of(request.user))
    if text:
        recipes = [recipe for recipe in recipes if text.casefold() in recipe.name.casefold()]
    return {
        "list_page": page,
        "open_jobs": [line for line in lines if line.is_open],
        "ended_jobs": [line for line in lines if not line.is_open],
        "list_recipes": recipes,
        "list_current": current,
        "list_groups": groups,
        "list_runs": any(line.batch.status in ACTIVE for line in (*lines, *listed)),
        "find": text,
    }


def _listed_groups(user: User, text: str) -> list[JobGroup]:
    """Return the newest jobs of other features that ask for it."""
    groups = []
    for handler, listing in listings().items():
        mine = batches.owned_batches(user, handler).defer("spec")
        if text:
            mine = mine.filter(name__icontains=text)
        found = list(mine[:LISTED])
        counts = batches.count_rows_by_status(found)
        lines = [
            _line(batch, counts[batch.pk], None, batch.name, reverse(listing.page, args=[batch.pk]))
            for batch in found
        ]
        if lines:
            groups.append(JobGroup(listing.heading, lines))
    return groups


def _line(batch: Batch, counts: dict[str, int], key: int | None, name: str, url: str) -> JobLine:
    ended = (ItemStatus.ACCEPTED, ItemStatus.REJECTED, ItemStatus.FAILED)
    finished = sum(counts[status] for status in ended)
    state = job_state(batch.status, counts, batch.wanted)
    return JobLine(key, name, url, batch, state, counts[ItemStatus.ACCEPTED], finished)
