"""The card of a server: everything its part of the page shows, as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from apps.llm.permits import Lane, Occupancy, PermitInfo, UsageBucket
from apps.servers.facts import capacity
from apps.servers.models import Kind, Server, State
from apps.servers.pages.charts import Chart, charts, series
from apps.servers.pages.fact_rows import Known, ModelLine, facts_of, models
from apps.servers.pages.slot_view import Box, Holding, Occupant, Reading, boxes
from apps.servers.pages.status_text import Moment, in_words, period
from apps.servers.services import Activity, Health

# Above this, boxes are small squares with a letter, and words stand in a list below them.
WIDE_BOXES = 12

TONES = {
    "ready": "good",
    "loading": "warn",
    "asleep": "",
    "unreachable": "bad",
    "unauthorized": "bad",
    "stuck": "bad",
}


@dataclass(frozen=True)
class Row:
    """The slots that one model has, or all models of a server share."""

    model: str
    boxes: list[Box]
    shown_by_server: bool
    """False: only what the workbench itself has sent is known."""

    @property
    def is_dense(self) -> bool:
        return len(self.boxes) > WIDE_BOXES

    @property
    def busy(self) -> list[Box]:
        return [box for box in self.boxes if box.occupant is not Occupant.IDLE]

    @property
    def legend(self) -> list[tuple[Box, int]]:
        """A box of each kind, and how many there are: for boxes too small for words."""
        kinds: dict[tuple[Occupant, str], list[Box]] = {}
        for box in self.boxes:
            kinds.setdefault((box.occupant, box.who), []).append(box)
        return [(alike[0], len(alike)) for alike in kinds.values()]


@dataclass(frozen=True)
class Card:
    server: Server
    state: str
    tone: str
    since: str
    words: str
    rows: list[Row]
    models: list[ModelLine]
    facts: list[Known]
    doubts: list[str]
    """What is assumed of it because nobody says it, and how to say it."""
    advice: list[str]
    charts: list[Chart]
    series: str
    """The numbers of the charts, in JSON."""
    uses: list[str]

    @property
    def says_names_only(self) -> bool:
        """A proxy that tells nothing of its models but what they are called."""
        return not any(
            m.state or m.context or m.abilities or m.actions or m.error for m in self.models
        )


def card(
    server: Server,
    *,
    health: Health,
    occupancies: Mapping[str, Occupancy],
    slots: Mapping[str, Sequence[Mapping[str, Any]]],
    buckets: Sequence[UsageBucket],
    activities: Mapping[str, Activity],
    viewer: User,
) -> Card:
    """Puts together what was found out.

    Args:
        occupancies: by scope: "" where all models share the slots, else the model's id.
        slots: what the server says of its slots, by scope.
        viewer: who looks. The name of a job is for its owner and staff.
    """
    state = _state(server, health)
    reachable = state in {"ready", "stuck", "asleep"}
    rows = [
        _row(server, scope, slots.get(scope, ()), occupancy, viewer)
        for scope, occupancy in occupancies.items()
        if reachable
    ]
    return Card(
        server=server,
        state=state,
        tone=TONES.get(state, ""),
        since=_since(health.since),
        words=in_words(_moment(server, state, health, rows, occupancies)),
        rows=rows,
        models=models(server, activities) if reachable else [],
        facts=facts_of(server),
        doubts=capacity.doubts(server) if reachable else [],
        advice=list(server.facts.get("advice", [])) if viewer.is_staff else [],
        charts=charts(buckets, embeds=_embeds(server)),
        series=series(buckets),
        uses=[default.use for default in server.defaults.all()],
    )


def _state(server: Server, health: Health) -> str:
    if health.state == State.READY and server.facts.get("sleeping"):
        return "asleep"
    return str(health.state)


def _row(
    server: Server,
    scope: str,
    slots: Sequence[Mapping[str, Any]],
    occupancy: Occupancy,
    viewer: User,
) -> Row:
    readings = [
        Reading(
            number=slot["id"],
            busy=slot["busy"],
            task=slot.get("task") or 0,
            held=slot.get("held", slot.get("prompt_tokens")),
            cached=slot.get("cached_tokens"),
            decoded=slot.get("decoded"),
            remain=slot.get("remain"),
        )
        for slot in slots
    ]
    held = [
        _holding(entry, viewer) for entry in occupancy.held if server.scope(entry.model) == scope
    ]
    shows = bool(readings) or server.facts.get("shows_slots", server.kind == Kind.LLAMA_SERVER)
    return Row(scope, boxes(readings, held, server.width(scope)), shows)


def _holding(entry: PermitInfo, viewer: User) -> Holding:
    is_job = entry.lane in {Lane.BATCH, "revoked"}
    may_know = not is_job or viewer.is_staff or entry.owner == viewer.pk
    return Holding(
        Occupant.JOB if is_job else Occupant.CHAT,
        label=(entry.label if may_know else "") or ("a job" if is_job else ""),
        tokens=entry.tokens,
        started=-entry.seconds,
        model=entry.model,
    )


def _moment(
    server: Server,
    state: str,
    health: Health,
    rows: Sequence[Row],
    occupancies: Mapping[str, Occupancy],
) -> Moment:
    known = server.model_facts
    everyone = list(occupancies.values())
    cut = min(
        (found for found in everyone if found.limit is not None),
        key=lambda found: found.limit or 0,
        default=None,
    )
    now = timezone.now()
    return Moment(
        state="sleeping" if state == "asleep" else state,
        kind=server.get_kind_display(),
        error=health.error,
        slots=sum(len(row.boxes) for row in rows) or server.slots,
        boxes=[box for row in rows for box in row.boxes],
        waiting=len(everyone[0].waiting) if everyone else 0,
        people=everyone[0].people if everyone else 0,
        wait_reason=everyone[0].wait_reason if everyone else "",
        limit=cut.limit if cut else None,
        limit_reason=cut.limit_reason if cut else "",
        limit_seconds=cut.limit_seconds if cut else None,
        loading=[model["id"] for model in known if model.get("state") == "loading"],
        sleeping=[model["id"] for model in known if model.get("state") == "sleeping"],
        swaps=server.swaps,
        silent_seconds=_seconds_since(health.since) if state == State.STUCK else None,
        next_look=(health.next_look - now).total_seconds() if health.next_look else None,
    )


def _embeds(server: Server) -> bool:
    found = server.model_facts
    return bool(found) and all(model.get("embeddings") for model in found)


def _since(moment: datetime | None) -> str:
    """In minutes: a number that changes with every look would be sent with every look."""
    seconds = _seconds_since(moment)
    if seconds is None:
        return ""
    return "for less than a minute" if seconds < 60 else f"for {period(max(seconds, 90))}"


def _seconds_since(moment: datetime | None) -> float | None:
    return (timezone.now() - moment).total_seconds() if moment else None
