"""What a job will take, from rows that were really made and from earlier jobs: always a range."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from apps.batch.models import FINISHED, Batch, ItemStatus
from apps.batch.services import rows_of
from apps.generation.recipe.spec import HANDLER
from apps.generation.rows.preview import Preview
from apps.servers.models import Server
from apps.servers.services import Target

JOBS = 5  # the last ones are looked at
RECENT = timedelta(days=30)
LONG_ENOUGH = 5.0  # seconds of work; shorter jobs are mostly start and end
# A token that is read costs so much of one that is written: a batch of them is computed at once.
READ_SHARE = 1 / 8
SPREAD = 1.25  # jobs on one machine differ by so much for reasons nobody wrote down
START_SECONDS = 2.0  # until the first row of a job is asked for
MOST_TRIES = 5.0  # of a refilling job, see `apps.batch.models.Batch.tries`


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a job of some rows comes to. Seconds are None where nothing was measured."""

    rows: int
    read: int
    """Tokens read anew: what is in the cache costs nothing."""
    written: int
    accepted: float
    """Share of the tried rows that would be accepted."""
    fastest: float | None = None
    slowest: float | None = None
    from_jobs: int = 0
    """How many earlier jobs it rests on; 0: the tried rows alone."""


def estimate(
    target: Target, tried: Sequence[Preview], rows: int, *, refill: bool, width: int | None = None
) -> Estimate | None:
    """Tokens and time of a job, from a preview of it; None where no row came back.

    Earlier jobs with this model on this server say how fast it is with all slots in use. Without
    any the preview's rows do: between no gain from more rows at once, and a full one.

    Args:
        refill: whether rejected rows are replaced: then more rows are made than are wanted.
        width: most rows at once, as the job's limit.
    """
    told = [each.told for each in tried if each.told is not None]
    if not told:
        return None
    # The first previews fill the cache, so of what is read the cheaper half counts.
    fresh = sorted(one.usage.prompt_tokens - one.usage.cached_tokens for one in told)
    cheaper = fresh[: max(1, len(fresh) // 2)]
    read = sum(cheaper) / len(cheaper)
    written = sum(one.usage.completion_tokens for one in told) / len(told)
    good = sum(1 for each in tried if each.outcome and not each.outcome.code)
    tries = min(MOST_TRIES, len(tried) / good if good else MOST_TRIES) if refill else 1.0

    slots = target.server.slots_of(target.model)
    wide = min(slots, width or slots)
    seconds = [each.seconds for each in tried if each.seconds]
    fastest = slowest = None
    rates = rates_of(target.server, target.model) if wide == slots else []
    work = (written + READ_SHARE * read) * rows
    if rates and work:
        fastest, slowest = work / max(rates) / SPREAD, work / min(rates) * SPREAD
    elif seconds:
        each = sum(seconds) / len(seconds)
        fastest, slowest = rows * each / wide, rows * each / min(len(tried), wide)
    if fastest is not None and slowest is not None:
        least = max(seconds, default=0.0)  # no job ends before its longest row
        fastest = max(fastest, least)
        slowest = max(slowest * tries, least) + START_SECONDS
    return Estimate(
        rows=rows,
        read=round(read * rows * tries),
        written=round(written * rows * tries),
        accepted=good / len(tried),
        fastest=fastest,
        slowest=slowest,
        from_jobs=len(rates) if rates and work else 0,
    )


def rates_of(server: Server, model: str) -> list[float]:
    """How fast the last jobs with this model went that had all slots: tokens written a second, with
    the share that reading costs."""
    last = Batch.objects.filter(
        server=server,
        model=model,
        handler=HANDLER,
        width=None,
        active_seconds__gt=LONG_ENOUGH,
        created__gt=timezone.now() - RECENT,
    )
    found = []
    for batch in last.order_by("-pk")[:JOBS]:
        read = batch.prompt_tokens - batch.cached_tokens
        if work := batch.completion_tokens + READ_SHARE * read:
            found.append(work / batch.active_seconds)
    return found


def from_job(batch: Batch, rows: int) -> tuple[float, float] | None:
    """Seconds for so many rows, fastest and slowest, where they go as those of an earlier job.

    Of a job that replaces what is rejected so many accepted rows are meant.
    """
    counted = FINISHED if batch.goal is None else (ItemStatus.ACCEPTED,)
    made = rows_of(batch.pk).filter(status__in=counted).count()
    if not made or batch.active_seconds <= LONG_ENOUGH:
        return None
    each = batch.active_seconds / made
    return rows * each / SPREAD, rows * each * SPREAD + START_SECONDS
