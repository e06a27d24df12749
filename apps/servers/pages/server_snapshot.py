"""The state of a server at one moment, as plain data for sentences about it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from apps.llm.permits import Lane, ModelWait, Occupancy
from apps.servers.models import Server, State
from apps.servers.pages.slots.slot_view import SlotView
from apps.servers.services import Health

NO_REQUESTS = Occupancy(
    held=[],
    waiting=[],
    people=0,
    limit=None,
    limit_reason="",
    limit_seconds=None,
    wait_reason="",
)


@dataclass(frozen=True)
class ServerSnapshot:
    """The state of a server at one moment."""

    state: str = "ready"
    """A `State` of the server: ready, loading, unreachable, unauthorized, unknown, sleeping."""
    kind: str = "llama-server"
    """The display name: "llama-swap"."""
    error: str = ""
    is_downloading: bool = False
    """True if it waits for the download of its model; `error` says how far it is."""
    slots: int = 1
    views: Sequence[SlotView] = ()
    waiting: int = 0
    """Requests of ours that wait for a slot."""
    waiting_agents: int = 0
    """Those of them that are agents'; the others are people's."""
    model_waits: Sequence[ModelWait] = ()
    """Requests of programs that wait until their model may be loaded."""
    people: int = 0
    """Slots that jobs leave free because people are chatting."""
    wait_reason: str = ""
    """The refusal that rows of jobs got, as in `Occupancy`: slots, people, tokens, model:<id>."""
    limit: int | None = None
    """Fewer slots than there are, for now."""
    limit_reason: str = ""
    limit_seconds: float | None = None
    loading: Sequence[str] = field(default_factory=tuple)
    """Models on their way into memory."""
    sleeping: Sequence[str] = field(default_factory=tuple)
    swaps: bool = False
    """True if it loads models on demand."""
    silent_seconds: float | None = None
    """Seconds in which it has had requests and returned no token."""
    next_check: float | None = None
    """Seconds until the next probe."""


def take_snapshot(
    server: Server,
    state: str,
    health: Health,
    views: Sequence[SlotView],
    occupancies: Mapping[str, Occupancy],
    model_waits: Sequence[ModelWait] = (),
) -> ServerSnapshot:
    """Put together what is known about a server now.

    Args:
        state: a `State`, or "asleep".
        views: all slots that the page shows.
        occupancies: by scope, as for the card.
    """
    queue = next(iter(occupancies.values()), NO_REQUESTS)
    cut = _lowest_limit(occupancies.values())
    return ServerSnapshot(
        state="sleeping" if state == "asleep" else state,
        kind=server.get_kind_display(),
        error=health.error,
        is_downloading=server.facts.is_downloading,
        slots=len(views) or server.slots,
        views=views,
        waiting=len(queue.waiting),
        waiting_agents=sum(one.wants == Lane.AGENT for one in queue.waiting),
        model_waits=model_waits,
        people=queue.people,
        wait_reason=queue.wait_reason,
        limit=cut.limit,
        limit_reason=cut.limit_reason,
        limit_seconds=cut.limit_seconds,
        loading=_models_in_state(server, "loading"),
        sleeping=_models_in_state(server, "sleeping"),
        swaps=server.swaps,
        silent_seconds=seconds_since(health.since) if state == State.STUCK else None,
        next_check=_seconds_until(health.next_check_at),
    )


def _lowest_limit(occupancies: Iterable[Occupancy]) -> Occupancy:
    """The occupancy of the model that a refusal leaves the fewest slots."""
    limited = (found for found in occupancies if found.limit is not None)
    return min(limited, key=lambda found: found.limit or 0, default=NO_REQUESTS)


def _models_in_state(server: Server, state: str) -> list[str]:
    return [model.id for model in server.model_facts if model.state == state]


def _seconds_until(moment: datetime | None) -> float | None:
    return (moment - timezone.now()).total_seconds() if moment else None


def seconds_since(moment: datetime | None) -> float | None:
    return (timezone.now() - moment).total_seconds() if moment else None
