"""Estimates of a job's tokens and time, from preview rows and earlier jobs: always a range."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from apps.batch.models import FINISHED, Batch, ItemStatus
from apps.batch.services import batches_of, rows_of
from apps.generation.recipe.spec import HANDLER
from apps.generation.rows.preview import Preview
from apps.servers.models import Server
from apps.servers.services import Target

JOBS = 5  # earlier jobs to compare with
RECENT = timedelta(days=30)
MIN_SECONDS = 5.0  # of work; shorter jobs are mostly start and end
# A prompt token costs this share of an output token: a batch of them is computed at once.
READ_SHARE = 1 / 8
SPREAD = 1.25  # equal jobs on one machine differ by this factor
START_SECONDS = 2.0  # until the first request of a job
MOST_TRIES = 5.0  # of a refilling job, see `apps.batch.models.Batch.tries`


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens and seconds of a job; seconds are None where nothing was measured."""

    rows: int
    prompt_tokens: int
    """Without those in the prompt cache."""
    output_tokens: int
    accepted: float
    """Share of the preview rows that would be accepted."""
    fastest: float | None = None
    slowest: float | None = None
    from_jobs: int = 0
    """Earlier jobs it is based on; 0: the preview rows alone."""
    tried: int = 0
    """Rows of the preview."""

    @property
    def middle(self) -> float | None:
        """The seconds in the middle of the range, by their ratios."""
        if self.fastest is None or self.slowest is None:
            return None
        return math.sqrt(self.fastest * self.slowest)

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens

    @property
    def good(self) -> int:
        """Rows of the preview that would be accepted."""
        return round(self.accepted * self.tried)


def estimate_job(
    target: Target, tried: Sequence[Preview], rows: int, *, refill: bool, width: int | None = None
) -> Estimate | None:
    """Estimates a job from a preview of it; None where no row came back.

    Earlier jobs with this model on this server give the speed with all slots in use. Without them
    the range is from no gain by parallel rows to a full one.

    Args:
        refill: rejected rows are replaced, so more rows are generated than wanted.
        width: the job's limit of rows in parallel.
    """
    generated = [each.generated for each in tried if each.generated is not None]
    if not generated:
        return None
    # The first previews fill the cache, so of what is read the cheaper half counts.
    fresh = sorted(one.usage.prompt_tokens - one.usage.cached_tokens for one in generated)
    cheaper = fresh[: max(1, len(fresh) // 2)]
    read = sum(cheaper) / len(cheaper)
    written = sum(one.usage.completion_tokens for one in generated) / len(generated)
    good = sum(1 for each in tried if each.outcome and not each.outcome.code)
    tries = min(MOST_TRIES, len(tried) / good if good else MOST_TRIES) if refill else 1.0

    rates = _rates(target, width)
    work = (written + READ_SHARE * read) * rows
    times = _seconds_of(target, tried, rows, rates if work else [], work, tries, width)
    return Estimate(
        rows=rows,
        prompt_tokens=round(read * rows * tries),
        output_tokens=round(written * rows * tries),
        accepted=good / len(tried),
        fastest=times[0],
        slowest=times[1],
        from_jobs=len(rates) if rates and work else 0,
        tried=len(tried),
    )


def _rates(target: Target, width: int | None) -> list[float]:
    """Return the speeds of earlier jobs, if this one also uses all slots."""
    slots = target.server.slots_of(target.model)
    if min(slots, width or slots) < slots:
        return []
    return recent_rates(target.server, target.model)


def _seconds_of(
    target: Target,
    tried: Sequence[Preview],
    rows: int,
    rates: Sequence[float],
    work: float,
    tries: float,
    width: int | None,
) -> tuple[float | None, float | None]:
    """Return the least and most seconds of a job; None where nothing was measured.

    Args:
        rates: output tokens per second of earlier jobs.
        work: the job's output tokens, prompts included by their share.
        tries: rows generated for each one wanted.
    """
    slots = target.server.slots_of(target.model)
    wide = min(slots, width or slots)
    seconds = [each.seconds for each in tried if each.seconds]
    if rates:
        fastest, slowest = work / max(rates) / SPREAD, work / min(rates) * SPREAD
    elif seconds:
        each = sum(seconds) / len(seconds)
        fastest, slowest = rows * each / wide, rows * each / min(len(tried), wide)
    else:
        return None, None
    least = max(seconds, default=0.0)  # no job ends before its longest row
    return max(fastest, least), max(slowest * tries, least) + START_SECONDS


def recent_rates(server: Server, model: str) -> list[float]:
    """Output tokens per second of the last jobs with this model and all slots, prompts included by
    their share."""
    last = batches_of(HANDLER, server, model).filter(
        width=None,
        active_seconds__gt=MIN_SECONDS,
        created__gt=timezone.now() - RECENT,
    )
    found = []
    for batch in last[:JOBS]:
        read = batch.prompt_tokens - batch.cached_tokens
        if work := batch.completion_tokens + READ_SHARE * read:
            found.append(work / batch.active_seconds)
    return found


def estimate_from_job(batch: Batch, rows: int) -> tuple[float, float] | None:
    """Seconds for this many rows at the speed of an earlier job, fastest and slowest.

    For a job that replaces rejected rows, accepted rows are meant.
    """
    counted = FINISHED if batch.goal is None else (ItemStatus.ACCEPTED,)
    made = rows_of(batch.pk).filter(status__in=counted).count()
    if not made or batch.active_seconds <= MIN_SECONDS:
        return None
    each = batch.active_seconds / made
    return rows * each / SPREAD, rows * each * SPREAD + START_SECONDS
