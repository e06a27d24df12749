"""How often the models of each server were loaded in the last day, and what that cost."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from apps.monitoring.history.measurement import Measurement, total
from apps.monitoring.history.store import HOUR
from apps.monitoring.models import Sample
from apps.tuning.hooks import HOURS, Swaps

STEP = 300  # two rows are ten minutes
MOST_MODELS = 4


def read_swaps(servers: Iterable[int], now: int) -> Mapping[int, Swaps]:
    """Return what was loaded, by server; a server without a load is left out. Blocks."""
    pks = list(servers)
    samples = Sample.objects.filter(server__in=pks, step=STEP, start__gte=now - HOURS * HOUR)
    loading = set(samples.filter(loads__gt=0).values_list("server", flat=True))
    rows: dict[int, list[Sample]] = defaultdict(list)
    asked: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in samples.filter(server__in=loading).order_by("start"):
        if row.model:
            asked[row.server_id][row.model] += row.requests
        else:
            rows[row.server_id].append(row)
    return {pk: _swaps(found, asked[pk]) for pk, found in rows.items()}


def _swaps(rows: Sequence[Sample], asked: Mapping[str, int]) -> Swaps:
    """Rows of the whole server, oldest first."""
    loading = total(row.measurement for row in rows if row.loads)
    usual = total(row.measurement for row in rows if not row.loads)
    adjacent = (
        one.loads + two.loads for one, two in pairwise(rows) if two.start - one.start == STEP
    )
    by_requests = sorted((model for model in asked if asked[model]), key=lambda name: -asked[name])
    return Swaps(
        loads=loading.loads,
        most=max([*adjacent, *(row.loads for row in rows)], default=0),
        requests=loading.requests,
        seconds=_first_token(loading),
        usual_seconds=_first_token(usual),
        models=tuple(by_requests[:MOST_MODELS]),
    )


def _first_token(measured: Measurement) -> float | None:
    """Mean seconds to the first token."""
    requests = sum(measured.first_tokens)
    return measured.first_ms / requests / 1000 if requests else None
