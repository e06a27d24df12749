"""The card of one server on the page, as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from apps.llm.permits import ModelWait, Occupancy, UsageBucket
from apps.servers.facts import capacity
from apps.servers.facts.slot_status import SlotStatus
from apps.servers.models import Kind, Server, State
from apps.servers.pages.charts import Chart, charts, series
from apps.servers.pages.fact_rows import FactRow, ModelRow, fact_rows, model_rows
from apps.servers.pages.line import Line, build_line
from apps.servers.pages.server_snapshot import ServerSnapshot, seconds_since, take_snapshot
from apps.servers.pages.slots.slot_file_rows import SlotFileSummary, slot_file_rows
from apps.servers.pages.slots.slot_owner import held_permit
from apps.servers.pages.slots.slot_view import Occupant, SlotView, slot_views
from apps.servers.pages.status_text import describe, format_duration
from apps.servers.services import Health, ModelActivity

# Above this, boxes are small squares with a letter, and a list below them has the words.
MAX_WIDE_BOXES = 12

TONES = {
    "ready": "good",
    "loading": "warn",
    "asleep": "",
    "unreachable": "bad",
    "unauthorized": "bad",
    "stuck": "bad",
}


@dataclass(frozen=True)
class SlotRow:
    """The slots of one model, or those that all models of a server share."""

    model: str
    views: list[SlotView]
    is_reported: bool
    """False: only the requests of Workbench itself are known."""

    @property
    def is_dense(self) -> bool:
        return len(self.views) > MAX_WIDE_BOXES

    @property
    def busy(self) -> list[SlotView]:
        return [view for view in self.views if view.occupant is not Occupant.IDLE]

    @property
    def legend(self) -> list[tuple[SlotView, int]]:
        """One view of each kind with its count, for boxes too small for words."""
        kinds: dict[tuple[Occupant, str], list[SlotView]] = {}
        for view in self.views:
            kinds.setdefault((view.occupant, view.owner), []).append(view)
        return [(alike[0], len(alike)) for alike in kinds.values()]


@dataclass(frozen=True)
class Card:
    server: Server
    state: str
    tone: str
    since: str
    words: str
    rows: list[SlotRow]
    models: list[ModelRow]
    facts: list[FactRow]
    assumptions: list[str]
    """Sentences about facts that are assumed, and how to state them."""
    advice: list[str]
    findings: list[str]
    """What is wrong, as far as it shows without an examination."""
    charts: list[Chart]
    series: str
    """The numbers of the charts as JSON."""
    downloads: bool
    """It can download models."""
    line: Line

    @property
    def state_label(self) -> str:
        """The word for the state, the same as everywhere: "offline", "key rejected"."""
        return str(State(self.state).label).lower() if self.state in State.values else self.state

    @property
    def lists_names_only(self) -> bool:
        """True for a proxy that reports nothing about its models but their names."""
        return not any(
            m.state or m.context or m.abilities or m.actions or m.error for m in self.models
        )


def build_card(
    server: Server,
    *,
    health: Health,
    occupancies: Mapping[str, Occupancy],
    slots: Mapping[str, Sequence[SlotStatus]],
    buckets: Sequence[UsageBucket],
    activities: Mapping[str, ModelActivity],
    viewer: User,
    slot_files: SlotFileSummary | None = None,
    findings: Sequence[str] = (),
    model_waits: Sequence[ModelWait] = (),
) -> Card:
    """Build the card from what was read.

    Args:
        occupancies: by scope: "" where all models share the slots, else the model's id.
        slots: the server's report about its slots, by scope.
        viewer: the user; names of jobs are for their owners and staff.
        slot_files: of a server that saves slots.
        findings: what is wrong with it, as sentences.
        model_waits: who waits for models that it has not loaded.
    """
    state = _state(server, health)
    reachable = state in {"ready", "stuck", "asleep"}
    rows = _slot_rows(server, occupancies, slots, viewer) if reachable else []
    views = [view for row in rows for view in row.views]
    snapshot = take_snapshot(server, state, health, views, occupancies, model_waits)
    return Card(
        server=server,
        state=state,
        tone=TONES.get(state, ""),
        since=_since(health.since),
        words=describe(snapshot),
        rows=rows,
        models=model_rows(server, activities) if reachable else [],
        facts=fact_rows(server) + (slot_file_rows(server, slot_files) if slot_files else []),
        assumptions=capacity.assumptions(server) if reachable else [],
        advice=list(server.facts.advice) if viewer.is_staff else [],
        findings=list(findings) if reachable else [],
        charts=charts(buckets, embeds=_only_embeds(server)),
        series=series(buckets),
        downloads=reachable and server.kind == Kind.ROUTER,
        line=_line(server, reachable, rows, buckets, snapshot),
    )


def _state(server: Server, health: Health) -> str:
    if health.state == State.READY and server.facts.sleeping:
        return "asleep"
    return str(health.state)


def _line(
    server: Server,
    reachable: bool,
    rows: Sequence[SlotRow],
    buckets: Sequence[UsageBucket],
    snapshot: ServerSnapshot,
) -> Line:
    return build_line(
        server,
        reachable=reachable,
        uses=[default.use for default in server.defaults.all()],
        views=[view for row in rows for view in row.views],
        reports_slots=bool(rows) and all(row.is_reported for row in rows),
        buckets=buckets,
        next_check=snapshot.next_check,
        waiting=snapshot.waiting + sum(one.requests for one in snapshot.model_waits),
    )


def _slot_rows(
    server: Server,
    occupancies: Mapping[str, Occupancy],
    slots: Mapping[str, Sequence[SlotStatus]],
    viewer: User,
) -> list[SlotRow]:
    return [
        _slot_row(server, scope, slots.get(scope, ()), occupancy, viewer)
        for scope, occupancy in occupancies.items()
    ]


def _slot_row(
    server: Server,
    scope: str,
    slots: Sequence[SlotStatus],
    occupancy: Occupancy,
    viewer: User,
) -> SlotRow:
    held = [
        held_permit(entry, viewer)
        for entry in occupancy.held
        if server.slot_scope(entry.model) == scope
    ]
    shows_slots = server.facts.shows_slots
    if shows_slots is None:
        shows_slots = server.kind == Kind.LLAMA_SERVER
    views = slot_views(slots, held, server.slots_of(scope))
    return SlotRow(scope, views, bool(slots) or shows_slots)


def _only_embeds(server: Server) -> bool:
    models = server.model_facts
    return bool(models) and all(model.embeddings for model in models)


def _since(moment: datetime | None) -> str:
    """The age in minutes: one in seconds would change the page with every poll."""
    seconds = seconds_since(moment)
    if seconds is None:
        return ""
    return "for less than a minute" if seconds < 60 else f"for {format_duration(max(seconds, 90))}"
