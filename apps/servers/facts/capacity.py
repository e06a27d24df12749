"""How many requests and tokens a server takes at once, from what is known of it (pure).

A report of the server counts before a setting by a person, with one exception: whether the KV cache
is shared. No route of llama-server reports that, so there the person counts first. Unless something
shows that it is shared, each slot is taken to have its own: that is what a given -np makes. A first
overflow proves the opposite, and the request that overflowed is repeated (`apps.servers.retry`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from apps.servers.facts.server_facts import BestWidth, MeasuredWidth, ModelFacts, ServerFacts

T = TypeVar("T")

STATED = "set by you"
SETTINGS = "set by environment variable"
ASSUMED = "assumed"
MEASURED = "measured"

# Requests at once where nothing is known yet: the width is then measured from there.
START_WIDTH = 4
SLOTS_ADVICE = (
    "This server does not report how many requests it works on at once. "
    f"Jobs start with {START_WIDTH} and measure what is fastest. "
    "Enter its slots to set the number yourself."
)


class CapacitySource(Protocol):
    """The fields of a `Server` that its capacity follows from."""

    parallel: int | None
    context_stated: int | None
    kv_unified: bool | None
    from_settings: bool

    @property
    def facts(self) -> ServerFacts: ...

    @property
    def swaps(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value and its source."""

    value: T
    source: str


def concurrency_limit(server: CapacitySource) -> tuple[int, str] | None:
    """The most requests at a time for one model, and why; None where nothing limits them."""
    limit = server.facts.concurrency_limit
    # A person who states more slots has raised the limit there.
    return None if limit is None or (server.parallel or 0) > limit[0] else limit


def slots(server: CapacitySource, model: str = "") -> Fact[int]:
    """Requests for a model to have in flight: its slots, never more than the concurrency limit."""
    found = _slots(server, model)
    limit = concurrency_limit(server)
    return Fact(*limit) if limit and limit[0] < found.value else found


def _slots(server: CapacitySource, model: str) -> Fact[int]:
    if server.swaps:
        reported = _smallest(_models(server, model), "slots")
    else:
        reported = _of_server(server, "slots")
    if reported is not None:
        return reported
    if server.parallel:
        return Fact(server.parallel, STATED)
    if widths := _measured(server, model):
        return Fact(min(widths), MEASURED)
    # A router or llama-swap reports the slots of a model once it is loaded.
    is_open = server.facts.models and not server.swaps
    return Fact(START_WIDTH if is_open else 1, ASSUMED)


def is_measurable(server: CapacitySource, model: str) -> bool:
    """True if only the speed of its answers shows how many requests the server takes at once."""
    found = server.facts.model(model)
    if found is None or (server.swaps and not found.is_loaded):
        return False
    return _slots(server, model).source in {ASSUMED, MEASURED}


def measured_width(server: CapacitySource, model: str) -> MeasuredWidth | None:
    found = server.facts.model(model)
    return server.facts.measured_widths.get(found.id if found else model)


def best_width(server: CapacitySource, model: str) -> BestWidth | None:
    """Rows in parallel that were fastest; None if nobody measured that with these slots."""
    found = server.facts.model(model)
    best = server.facts.best_widths.get(found.id if found else model)
    return best if best and best.slots == slots(server, model).value else None


def _measured(server: CapacitySource, model: str) -> list[int]:
    """The measured width of a model; without a name of all models."""
    if not model:
        return [width.value for width in server.facts.measured_widths.values()]
    width = measured_width(server, model)
    return [width.value] if width else []


def context(server: CapacitySource, model: str = "") -> Fact[int | None]:
    """Tokens per slot."""
    reported = None if server.swaps else _of_server(server, "context")
    reported = reported or _smallest(_models(server, model), "context")
    if reported is not None:
        return Fact(reported.value, reported.source)
    return Fact(server.context_stated, STATED if server.context_stated else "")


def unified(server: CapacitySource, model: str = "") -> Fact[bool | None]:
    """True if the slots share one KV cache.

    In this order: a person, the command line, what requests have shown, the number of slots.
    """
    if server.kv_unified is not None:
        return Fact(server.kv_unified, SETTINGS if server.from_settings else STATED)
    found = server.facts.model(model)
    if found is not None and found.unified is not None:
        return Fact(found.unified, found.sources.get("unified", ""))
    observed = server.facts.observed_unified.get(found.id if server.swaps and found else "")
    if observed is not None:
        return Fact(observed.value, observed.source)
    if not server.swaps and server.facts.unified is not None:
        return Fact(server.facts.unified, server.facts.sources.get("unified", ""))
    return Fact(None, "")


def pool(server: CapacitySource, model: str = "") -> int | None:
    """Tokens that the requests in flight must fit into together, where the cache is shared."""
    if not unified(server, model).value:
        return None
    found = server.facts.model(model)
    return (found.pool if found else None) or context(server, model).value


def advice(server: CapacitySource) -> list[str]:
    """Sentences for whoever runs the server."""
    return [*server.facts.advice, *assumptions(server)]


def assumptions(server: CapacitySource) -> list[str]:
    """Sentences about what is assumed or was observed, and keeps the server from full use."""
    found = []
    observed, tokens = server.facts.observed_unified.get(""), pool(server)
    if observed is not None and observed.value and tokens:
        found.append(_pool_advice(slots(server).value, tokens))
    if server.facts.models and not server.swaps and _slots(server, "").source == ASSUMED:
        found.append(SLOTS_ADVICE)
    return found


def _pool_advice(slots: int, tokens: int) -> str:
    return (
        f"Its {slots} slots share one KV cache of {tokens:,} tokens, and requests have outgrown it "
        f"together: those in flight are kept within it. Start it with -np {slots} and a -c for all "
        "slots together to give each slot its own."
    )


def _of_server(server: CapacitySource, name: str) -> Fact[int] | None:
    value = getattr(server.facts, name)
    return Fact(value, server.facts.sources.get(name, "")) if value else None


def _models(server: CapacitySource, name: str) -> list[ModelFacts]:
    """The named model; without a name all, of which the smallest is safe whichever answers."""
    if not name:
        return server.facts.models
    found = server.facts.model(name)
    return [found] if found else []


def _smallest(models: Iterable[ModelFacts], name: str) -> Fact[int] | None:
    reported = [(getattr(model, name), model) for model in models if getattr(model, name)]
    if not reported:
        return None
    value, model = min(reported, key=lambda pair: int(pair[0]))
    return Fact(value, model.sources.get(name, ""))
