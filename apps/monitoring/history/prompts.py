"""How long the prompts of each model were in the last day."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from apps.llm.permits import PROMPT_TOKEN_BOUNDS
from apps.monitoring.history.measurement import Measurement
from apps.monitoring.history.store import HOUR
from apps.monitoring.models import Sample
from apps.tuning.hooks import HOURS, Prompts

USUAL_SHARE = 0.95


def read_prompts(servers: Iterable[int], now: int) -> Mapping[tuple[int, str], Prompts]:
    """Return the sizes of prompts by server and model. Blocks."""
    rows = (
        Sample.objects.filter(server__in=list(servers), step=HOUR, start__gte=now - HOURS * HOUR)
        .exclude(model="")
        .exclude(prompt_sizes=[])
        .values_list("server", "model", "prompt_sizes", "prompt_cut", "too_long")
    )
    found: dict[tuple[int, str], Measurement] = defaultdict(Measurement)
    for server, model, sizes, cut, refused in rows:
        found[server, model] += Measurement(prompt_sizes=sizes, prompt_cut=cut, too_long=refused)
    return {place: _prompts(measured) for place, measured in found.items()}


def _prompts(measured: Measurement) -> Prompts:
    sizes = measured.prompt_sizes
    last = max((number for number, count in enumerate(sizes) if count), default=0)
    return Prompts(
        requests=sum(sizes),
        usual=math.ceil(measured.prompt_tokens(USUAL_SHARE) or 0),
        largest=PROMPT_TOKEN_BOUNDS[min(last, len(PROMPT_TOKEN_BOUNDS) - 1)],
        cut=measured.prompt_cut,
        refused=measured.too_long,
    )
