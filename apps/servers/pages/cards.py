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
from apps.servers.pages.slots.slot_rows import SlotRow, slot_rows
from apps.servers.pages.status_text import describe, format_duration
from apps.servers.services import Health, ModelActivity

TONES = {
    "ready": "good",
    "loading": "warn",
    "asleep": "",
    "unreachable": "bad",
    "unauthorized": "bad",
    "stuck": "bad",
}


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


@dataclass(frozen=True, kw_only=True)
class SlotUse:
    """How the slots of a server are used, now and lately."""

    occupancies: Mapping[str, Occupancy]
    """By scope: "" where all models share the slots, else the model's id."""
    slots: Mapping[str, Sequence[SlotStatus]]
    """The server's report about its slots, by scope."""
    buckets: Sequence[UsageBucket]
    model_waits: Sequence[ModelWait]
    """Who waits for models that it has not loaded."""


@dataclass(frozen=True, kw_only=True)
class CardFacts:
    """What was read for the card of one server."""

    health: Health
    use: SlotUse
    activities: Mapping[str, ModelActivity]
    """By model: what is done with it now."""
    slot_files: SlotFileSummary | None
    """None: it saves no slots."""
    findings: Sequence[str]
    """What is wrong with it, as sentences."""


def build_card(server: Server, read: CardFacts, *, viewer: User) -> Card:
    """Build the card; names of jobs are for their owners and staff."""
    state = _state(server, read.health)
    reachable = state in {"ready", "stuck", "asleep"}
    use = read.use
    rows = slot_rows(server, use.occupancies, use.slots, viewer) if reachable else []
    views = [view for row in rows for view in row.views]
    now = take_snapshot(server, state, read.health, views, use.occupancies, use.model_waits)
    files = slot_file_rows(server, read.slot_files) if read.slot_files else []
    return Card(
        server=server,
        state=state,
        tone=TONES.get(state, ""),
        since=_since(read.health.since),
        words=describe(now),
        rows=rows,
        models=model_rows(server, read.activities) if reachable else [],
        facts=fact_rows(server) + files,
        assumptions=capacity.assumptions(server) if reachable else [],
        advice=list(server.facts.advice) if viewer.is_staff else [],
        findings=list(read.findings) if reachable else [],
        charts=charts(use.buckets, embeds=_only_embeds(server)),
        series=series(use.buckets),
        downloads=reachable and server.kind == Kind.ROUTER,
        line=_line(server, reachable, rows, use.buckets, now),
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


def _only_embeds(server: Server) -> bool:
    models = server.model_facts
    return bool(models) and all(model.embeddings for model in models)


def _since(moment: datetime | None) -> str:
    """The age in minutes: one in seconds would change the page with every poll."""
    seconds = seconds_since(moment)
    if seconds is None:
        return ""
    return "for less than a minute" if seconds < 60 else f"for {format_duration(max(seconds, 90))}"
