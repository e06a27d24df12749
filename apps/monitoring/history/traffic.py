"""What the samples of the last hours say of each model, for the doctor."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.db.models import Q, Sum

from apps.monitoring.history.prompts import read_prompts
from apps.monitoring.history.speeds import read_speeds
from apps.monitoring.history.store import HOUR
from apps.monitoring.history.swaps import read_swaps
from apps.monitoring.models import Sample
from apps.tuning.hooks import (
    HOURS,
    NO_PROMPTS,
    NO_SPEEDS,
    NO_SWAPS,
    NO_TRAFFIC,
    ByModel,
    Cuts,
    Drafts,
    Traffic,
)

STEP = 300  # the resolution that is kept for two days
SHORT_STEP, GPU_SECONDS = 30, 600
SUMS = ("ended", "only_thought", "completion", "drafted", "draft_accepted", "drafting")
CUTS = ("cut_off", "cut_off_cs", "cut_off_cs2")


def read_traffic(servers: Iterable[int]) -> ByModel:
    """Add up the samples of each model of these servers. Blocks."""
    now, servers = int(time.time()), list(servers)
    memory, speeds = _gpu_memory(servers, now), read_speeds(servers, now)
    swaps, prompts = read_swaps(servers, now), read_prompts(servers, now)
    rows = (
        Sample.objects.filter(server__in=servers, step=STEP, start__gte=now - HOURS * HOUR)
        .exclude(model="")
        .values("server", "model")
        .annotate(**{f"sum_{name}": Sum(name) for name in (*SUMS, *CUTS)})
        .order_by()
    )
    found = {(row["server"], row["model"]): _traffic(row) for row in rows}
    found |= {(pk, ""): NO_TRAFFIC for pk in memory.keys() | swaps.keys()}
    return {
        place: replace(
            one,
            gpu_memory=memory.get(place[0]),
            swaps=swaps.get(place[0], NO_SWAPS),
            speeds=speeds.get(place, NO_SPEEDS),
            prompts=prompts.get(place, NO_PROMPTS),
        )
        for place, one in found.items()
    }


def _gpu_memory(servers: list[int], now: int) -> dict[int, int]:
    """MiB in use on the GPUs of each server's machine, the most of the last minutes."""
    rows = Sample.objects.filter(
        *(Q(server__in=servers, model="", step=SHORT_STEP), Q(start__gte=now - GPU_SECONDS)),
        gpu_readings__gt=0,
    )
    found: dict[int, int] = {}
    for pk, used, readings in rows.values_list("server", "gpu_memory", "gpu_readings"):
        found[pk] = max(found.get(pk, 0), used // readings)
    return found


def _traffic(row: Mapping[str, int]) -> Traffic:
    return Traffic(
        ended=row["sum_ended"],
        only_thought=row["sum_only_thought"],
        written=row["sum_completion"],
        drafts=Drafts(row["sum_drafted"], row["sum_draft_accepted"], row["sum_drafting"]),
        cuts=Cuts(*(row[f"sum_{name}"] for name in CUTS)),
    )
