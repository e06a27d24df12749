"""Takes a sample of every server: what its counters have grown by, and its slots now."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from django.db import transaction

from apps.llm.permits import Counts, Load, read_loads, read_totals
from apps.monitoring.gpus.reading import GpuReading
from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement, since
from apps.monitoring.models import LastReading
from apps.servers.models import Server, State
from apps.servers.services import read_health

# Of a router with hundreds of models those that were asked most; the server's own row has them all.
MODELS_AT_MOST = 20
# A sample that covers more than this would be a rate of a time in which nobody looked.
LONGEST_SECONDS = 3600.0
AWAY = (State.UNREACHABLE, State.STUCK)


def take_samples(
    moment: float | None = None, gpus: Mapping[int, Sequence[GpuReading]] | None = None
) -> None:
    """Add a sample for each server, and delete what is kept no longer.

    Args:
        moment: Unix time; None: now.
        gpus: those of each server's machine, by the server's ID, as far as they are reported.

    Raises:
        RedisError: the counters cannot be read. What they count is in the next sample.
    """
    moment = time.time() if moment is None else moment
    servers = list(Server.objects.all())
    pks = [server.pk for server in servers]
    totals, loads, health = read_totals(pks), read_loads(pks), read_health(servers)
    for server in servers:
        is_away = health[server.pk].state in AWAY
        on_gpus = Measurement.from_gpus((gpus or {}).get(server.pk, ()))
        _sample(
            server, totals[server.pk], loads[server.pk], on_gpus, is_away=is_away, moment=moment
        )
    store.delete_expired(moment)


@transaction.atomic
def _sample(
    server: Server,
    totals: Mapping[str, Counts],
    load: Load,
    on_gpus: Measurement,
    *,
    is_away: bool,
    moment: float,
) -> None:
    LastReading.objects.get_or_create(server=server, defaults={"taken": moment - 1})
    last = LastReading.objects.select_for_update().get(server=server)
    seconds = moment - last.taken
    if seconds <= 0:  # another worker was faster
        return
    gauges = {"readings": 1, "away": int(is_away), "seconds": min(seconds, LONGEST_SECONDS)}
    counts = _grown(server, last.totals, totals)
    measured = _by_model(server, counts, totals, load, gauges)
    loaded = server.loaded_models if server.swaps else []
    measured[""] = on_gpus + Measurement.from_counts(
        sum(counts.values(), Counter()),
        **gauges,
        loads=0 if last.loaded is None else len(set(loaded) - set(last.loaded)),
        busy=load.held.total(),
        waiting=load.waiting.total(),
        slots=_slots(server),
    )
    store.add(server, measured, moment)
    last.taken, last.totals, last.loaded = moment, totals, loaded
    last.save()


def _grown(
    server: Server, before: Mapping[str, Mapping[str, int]], totals: Mapping[str, Counts]
) -> dict[str, Counts]:
    """Return what each model's totals grew by, under its ID."""
    counts: dict[str, Counts] = defaultdict(Counter)
    for name, total in totals.items():
        counts[_model_id(server, name)].update(since(before.get(name, {}), total))
    return counts


def _by_model(
    server: Server,
    counts: Mapping[str, Counts],
    totals: Mapping[str, Counts],
    load: Load,
    gauges: Mapping[str, float],
) -> dict[str, Measurement]:
    """Return the measurements of the models that were asked most."""
    held, waiting = _by_id(server, load.held), _by_id(server, load.waiting)
    by_requests = sorted(counts, key=lambda name: -totals.get(name, Counter())["requests"])
    return {
        name: Measurement.from_counts(
            counts[name],
            **gauges,
            busy=held[name],
            waiting=waiting[name],
            slots=server.slots_of(name),
        )
        for name in [name for name in by_requests if name][:MODELS_AT_MOST]
    }


def _model_id(server: Server, name: str) -> str:
    """The model's id where a request named an alias, or nothing: then the first."""
    found = server.model(name)
    return found.id if found else name


def _by_id(server: Server, load: Counter[str]) -> Counter[str]:
    merged: Counter[str] = Counter()
    for name, count in load.items():
        merged[_model_id(server, name)] += count
    return merged


def _slots(server: Server) -> int:
    """The slots of the server; of one that swaps, those of all its loaded models."""
    if not server.swaps:
        return server.slots
    return sum(server.slots_of(name) for name in server.loaded_models)
