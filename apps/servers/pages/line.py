"""The line of one server in the list: who it is, what runs, how busy, how fast. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from apps.llm.permits import BUCKET_SECONDS, UsageBucket
from apps.servers.models import Server, State, Use
from apps.servers.pages.charts import NOW_SECONDS
from apps.servers.pages.slots.slot_view import Occupant, SlotView
from apps.servers.pages.status_text import format_duration

MAX_SQUARES = 16  # more slots are a number alone
# The drawing's own units: the page stretches it to the room there is.
WIDTH, HEIGHT = 300, 32
LEAST_RATE = 10.0  # tokens/s: below that an idle server would look busy
DEFAULT = "Default for"
USES: dict[str, str] = {Use.CHAT: "chat", Use.GENERATION: "jobs", Use.EMBEDDINGS: "embeddings"}


@dataclass(frozen=True)
class Line:
    """What stands in the list while the details are closed."""

    role: str
    model: str
    model_note: str
    state_note: str
    """Of a server that does not answer: when it is asked again."""
    squares: list[SlotView]
    """One view of each slot; none where slots are not known or too many."""
    busy: int
    slots: int | None
    """None where the server does not report its slots."""
    points: str
    """Tokens/s of the last 15 minutes, as the points of a line in a box of `WIDTH` x `HEIGHT`."""
    rate: int | None
    """Tokens/s of the last minute; None where it does not answer."""
    waiting: int
    """Requests of ours that wait for a slot or a model."""

    @property
    def rank(self) -> int:
        """The servers that are the default for something come first."""
        return 0 if self.role.startswith(DEFAULT) else 1


@dataclass(frozen=True)
class Total:
    """All servers together, beside the heading of the page."""

    busy: int
    slots: int
    waiting: int

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Self:
        known = [line for line in lines if line.slots is not None]
        return cls(
            sum(line.busy for line in known),
            sum(line.slots or 0 for line in known),
            sum(line.waiting for line in lines),
        )


def build_line(
    server: Server,
    *,
    reachable: bool,
    uses: Sequence[str],
    views: Sequence[SlotView],
    reports_slots: bool,
    buckets: Sequence[UsageBucket],
    next_check: float | None,
    waiting: int,
) -> Line:
    """Build the line of a server from what was read.

    Args:
        views: one of each slot.
        next_check: seconds until it is asked again.
    """
    rates = [(bucket.prompt + bucket.completion) / BUCKET_SECONDS for bucket in buckets]
    recent = rates[-NOW_SECONDS // BUCKET_SECONDS :]
    again = f"Next check in {format_duration(next_check)}" if next_check and next_check > 1 else ""
    return Line(
        role=f"{DEFAULT} {_and([USES.get(use, use) for use in uses])}"
        if uses
        else server.get_kind_display(),
        model=_model(server),
        model_note=_model_note(server, names_kind=bool(uses)),
        state_note=again if server.state == State.UNREACHABLE else "",
        squares=list(views) if reports_slots and len(views) <= MAX_SQUARES else [],
        busy=sum(view.occupant is not Occupant.IDLE for view in views),
        slots=len(views) if reports_slots else None,
        points=spark_points(rates),
        rate=round(sum(recent) / max(1, len(recent))) if reachable else None,
        waiting=waiting,
    )


def spark_points(rates: Sequence[float]) -> str:
    """Return `x,y` pairs of a line from left to right, its highest value near the upper edge."""
    if len(rates) < 2:
        return f"0,{HEIGHT - 1} {WIDTH},{HEIGHT - 1}"
    most = max(LEAST_RATE, *rates)
    step = WIDTH / (len(rates) - 1)
    tall = HEIGHT - 3
    return " ".join(
        f"{place * step:.1f},{HEIGHT - 1 - tall * rate / most:.1f}"
        for place, rate in enumerate(rates)
    )


def _model(server: Server) -> str:
    names = server.loaded_models or server.model_ids
    if not names:
        return "No models" if server.state == State.READY else "Model not reported"
    return f"{len(names)} models" if len(names) > 1 and not server.swaps else names[0]


def _model_note(server: Server, *, names_kind: bool) -> str:
    """Return what stands below the model; the kind of the server only if its role leaves it out."""
    names, loaded = server.model_ids, server.loaded_models
    if server.swaps:
        more = len(names) - max(1, len(loaded))
        state = "loads on demand" if loaded else "not loaded"
        return f"+ {more} more, {state}" if more > 0 else state
    if len(names) > 1:
        return f"{names[0]} and others"
    if context := server.context_of(names[0]) if names else None:
        return f"{context:,} tokens per slot"
    return server.get_kind_display() if names_kind else ""


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
