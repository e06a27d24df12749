"""Samples in the database: fine for hours, coarse for a month.

Each measurement is added to one row of every resolution. So the number of rows depends on the time
that is kept and on nothing else: not on how often is measured, nor on the number of requests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from django.db import transaction
from django.db.models import Q

from apps.monitoring.history.measurement import Measurement
from apps.monitoring.models import Sample
from apps.servers.models import Server

HOUR = 3600
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class Resolution:
    step: int
    """Seconds of one row."""
    keep: int
    """Seconds after which rows are deleted."""


RESOLUTIONS = (
    Resolution(30, 2 * HOUR),
    Resolution(300, 2 * DAY),
    Resolution(HOUR, 30 * DAY + HOUR),
)


@transaction.atomic
def add(server: Server, measured: Mapping[str, Measurement], moment: float) -> None:
    """Add what was measured to the rows of its time.

    Args:
        measured: by model; "" is the whole server.
        moment: the end of the time, in Unix seconds.
    """
    starts = {res.step: start_of(moment, res.step) for res in RESOLUTIONS}
    places = Q()
    for step, start in starts.items():
        places |= Q(step=step, start=start)
    known = {
        (row.model, row.step): row.measurement
        for row in Sample.objects.select_for_update().filter(places, server=server)
    }
    rows = [
        Sample(
            server=server,
            model=model,
            step=step,
            start=start,
            **asdict(known.get((model, step), Measurement()) + one),
        )
        for model, one in measured.items()
        for step, start in starts.items()
    ]
    Sample.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["server", "model", "step", "start"],
        update_fields=Measurement.names(),
    )


def start_of(moment: float, step: int) -> int:
    return int(moment // step) * step


def delete_expired(moment: float) -> int:
    """Delete the rows that are kept no longer; return how many these were."""
    expired = Q()
    for resolution in RESOLUTIONS:
        expired |= Q(step=resolution.step, start__lt=int(moment) - resolution.keep)
    return Sample.objects.filter(expired).delete()[0]


def read(
    server: Server, *, since: int, until: int, step: int, model: str = ""
) -> Sequence[Measurement | None]:
    """One entry for each `step` seconds from `since` to `until`, oldest first; None: no sample.

    Args:
        step: a multiple of a resolution's; rows are added up.
    """
    source = max(
        (res.step for res in RESOLUTIONS if step % res.step == 0 and until - since <= res.keep),
        default=RESOLUTIONS[-1].step,
    )
    first = start_of(since, step)
    found: list[Measurement | None] = [None] * -(-(until - first) // step)
    rows = Sample.objects.filter(
        server=server, model=model, step=source, start__gte=first, start__lt=until
    )
    for row in rows:
        place = (row.start - first) // step
        found[place] = (found[place] or Measurement()) + row.measurement
    return found


def models_of(server: Server, *, since: int) -> list[str]:
    """The models that were used since then, by name."""
    rows = Sample.objects.filter(server=server, start__gte=since, requests__gt=0).exclude(model="")
    return sorted(rows.values_list("model", flat=True).distinct())
