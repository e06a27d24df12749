"""How much a server takes at once, from what is known of it (pure).

What the server says counts before what a person states, with one exception: whether the KV cache is
shared. No route of llama-server tells, so there the person counts first. Unless something says that
it is shared, each slot is taken to have its own: that is what a given -np makes. A first overflow
shows that it is not so, and what was asked then is asked again (`apps.servers.retry`).
"""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from apps.servers.facts import learned

T = TypeVar("T")

STATED = "set by you"
SETTINGS = "set by environment variable"
ASSUMED = "assumed"

SLOTS_ADVICE = (
    "It does not say how many requests it works on at once, so they go one by one. State its "
    "slots: the -np of the model server behind it."
)


class Known(Protocol):
    """What is read of a `Server`."""

    kind: str
    parallel: int | None
    context_stated: int | None
    kv_unified: bool | None
    from_settings: bool
    facts: dict[str, Any]

    @property
    def swaps(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value and who told it."""

    value: T
    source: str


def model(server: Known, name: str = "") -> dict[str, Any] | None:
    models: list[dict[str, Any]] = server.facts.get("models", [])
    if not name:
        return models[0] if models else None
    for found in models:
        if found["id"] == name or name in found.get("aliases", ()):
            return found
    return None


def width_cap(server: Known) -> tuple[int, str] | None:
    cap = server.facts.get("width_cap")
    if not cap or (server.parallel or 0) > cap[0]:  # who states more has raised the limit there
        return None
    return cap[0], cap[1]


def width(server: Known, name: str = "") -> Fact[int]:
    slots = _slots(server, name)
    cap = width_cap(server)
    return Fact(cap[0], cap[1]) if cap and cap[0] < slots.value else slots


def _slots(server: Known, name: str) -> Fact[int]:
    told = _of_models(server, name, "slots") if server.swaps else _of_server(server, "slots")
    if told is not None:
        return told
    return Fact(server.parallel, STATED) if server.parallel else Fact(1, ASSUMED)


def context(server: Known, name: str = "") -> Fact[int | None]:
    told = None if server.swaps else _of_server(server, "context")
    told = told or _of_models(server, name, "context")
    if told is not None:
        return Fact(told.value, told.source)
    return Fact(server.context_stated, STATED if server.context_stated else "")


def unified(server: Known, name: str = "") -> Fact[bool | None]:
    """In this order: a person, the command line, what was seen to happen, the number of slots."""
    if server.kv_unified is not None:
        return Fact(server.kv_unified, SETTINGS if server.from_settings else STATED)
    found = model(server, name)
    if found is not None and found.get("unified") is not None:
        return Fact(found["unified"], _source(found, "unified"))
    seen = server.facts.get(learned.UNIFIED, {}).get(found["id"] if server.swaps and found else "")
    if seen is not None:
        return Fact(bool(seen["value"]), str(seen["source"]))
    if not server.swaps and server.facts.get("unified") is not None:
        return Fact(server.facts["unified"], _source(server.facts, "unified"))
    return Fact(None, "")


def pool(server: Known, name: str = "") -> int | None:
    """Tokens that the requests in flight must fit into together, where the cache is shared."""
    if not unified(server, name).value:
        return None
    found = model(server, name) or {}
    tokens: int | None = found.get("pool") or context(server, name).value
    return tokens


def advice(server: Known) -> list[str]:
    """What who runs the server could do, as sentences."""
    return [*server.facts.get("advice", []), *doubts(server)]


def doubts(server: Known) -> list[str]:
    """What keeps it from full use: what nobody says of it or was seen of it, and what to do."""
    models: list[dict[str, Any]] = server.facts.get("models", [])
    found = []
    if server.facts.get(learned.UNIFIED, {}).get("", {}).get("value") and pool(server):
        found.append(_pool_advice(width(server).value, pool(server)))
    if models and not server.swaps and _slots(server, "").source == ASSUMED:
        found.append(SLOTS_ADVICE)
    return found


def _pool_advice(slots: int, tokens: int | None) -> str:
    return (
        f"Its {slots} slots share one KV cache of {tokens:,} tokens, and requests have outgrown it "
        f"together: those in flight are kept within it. Start it with -np {slots} and a -c for all "
        "slots together to give each slot its own."
    )


def _of_server(server: Known, key: str) -> Fact[int] | None:
    value = server.facts.get(key)
    return Fact(int(value), _source(server.facts, key)) if value else None


def _of_models(server: Known, name: str, key: str) -> Fact[int] | None:
    """A model's value; without a name the smallest of all, which is safe whichever answers."""
    models: list[dict[str, Any]] = server.facts.get("models", [])
    if name:
        found = model(server, name)
        models = [found] if found else []
    told = [m for m in models if m.get(key)]
    if not told:
        return None
    least = min(told, key=lambda m: int(m[key]))
    return Fact(int(least[key]), _source(least, key))


def _source(facts: dict[str, Any], key: str) -> str:
    return str(facts.get("sources", {}).get(key) or facts.get(f"{key}_source") or "")
