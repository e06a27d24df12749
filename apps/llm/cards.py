"""The card of a server: everything its part of the page shows, as plain data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from apps.llm.boxes import Box, Holding, Occupant, Reading, boxes
from apps.llm.models import Kind, Server, State
from apps.llm.services import Action, Activity, Health
from apps.llm.slots import BUCKET_SECONDS, Bucket, Entry, Lane, Occupancy
from apps.llm.wording import Moment, in_words, period

# Above this, boxes are small squares with a letter, and words stand in a list below them.
WIDE_BOXES = 12
NOW_SECONDS = 60  # the numbers beside the charts are of the last minute

TONES = {
    "ready": "good",
    "loading": "warn",
    "asleep": "",
    "unreachable": "bad",
    "unauthorized": "bad",
    "stuck": "bad",
}
MODEL_TONES = {"loaded": "good", "failed": "bad", "loading": "warn", "unloading": "warn"}


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
class ModelLine:
    """One model of a server and what may be done with it."""

    id: str
    state: str
    tone: str
    error: str
    context: str
    abilities: list[str]
    doing: str
    """What is being done with it now, as a phrase: "loading"."""
    actions: list[str]


@dataclass(frozen=True)
class Known:
    """A fact, and who said so."""

    label: str
    value: str
    source: str


@dataclass(frozen=True)
class Chart:
    """One small chart: its name, and what a person reads without looking at the line."""

    name: str
    title: str
    now: str
    most: str


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
    buckets: Sequence[Bucket],
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
        since="" if (seconds := _seconds_since(health.since)) is None else period(seconds),
        words=in_words(_moment(server, state, health, rows, occupancies)),
        rows=rows,
        models=_models(server, activities) if reachable else [],
        facts=_facts(server),
        advice=list(server.facts.get("advice", [])) if viewer.is_staff else [],
        charts=_charts(server, buckets),
        series=_series(buckets),
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


def _holding(entry: Entry, viewer: User) -> Holding:
    is_job = entry.lane in {Lane.BATCH, "yielding"}
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
    models = server.model_facts
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
        held_back=everyone[0].held_back if everyone else "",
        limit=cut.limit if cut else None,
        limit_reason=cut.limit_reason if cut else "",
        limit_seconds=cut.limit_seconds if cut else None,
        loading=[model["id"] for model in models if model.get("state") == "loading"],
        sleeping=[model["id"] for model in models if model.get("state") == "sleeping"],
        swaps=server.swaps,
        silent_seconds=_seconds_since(health.since) if state == State.STUCK else None,
        next_look=(health.next_look - now).total_seconds() if health.next_look else None,
    )


def _seconds_since(moment: datetime | None) -> float | None:
    return (timezone.now() - moment).total_seconds() if moment else None


def _models(server: Server, activities: Mapping[str, Activity]) -> list[ModelLine]:
    lines = []
    for model in server.model_facts:
        activity = activities.get(model["id"])
        state = model.get("state") or "unknown"
        doing = _GERUNDS[activity.action] if activity and not activity.error else ""
        lines.append(
            ModelLine(
                id=model["id"],
                # A proxy does not say what is in memory: no badge is better than "unknown".
                state="" if state == "unknown" else state,
                tone=MODEL_TONES.get(state, ""),
                error=(activity.error if activity else "") or model.get("error", ""),
                context=_context(model, server),
                abilities=_abilities(model),
                doing=doing,
                actions=[] if doing else _actions(model, state),
            )
        )
    return lines


_GERUNDS = {
    Action.LOAD: "loading",
    Action.UNLOAD: "unloading",
    Action.WARM: "warming up",
}


def _actions(model: Mapping[str, Any], state: str) -> list[str]:
    """What makes sense now of what the server offers."""
    useless = {
        "loaded": {"load"},
        "sleeping": {"load"},
        "unloaded": {"unload", "warm"},
        "failed": {"unload", "warm"},
    }.get(state, set())
    return [action for action in model.get("actions", []) if action not in useless]


def _context(model: Mapping[str, Any], server: Server) -> str:
    context = model.get("context") or server.context
    trained = model.get("context_trained")
    if not context:
        return f"trained for {trained:,} tokens" if trained else ""
    beyond = f", trained for {trained:,}" if trained and trained != context else ""
    return f"{context:,} tokens per slot{beyond}"


def _abilities(model: Mapping[str, Any]) -> list[str]:
    found = [name for name in ("embeddings", "vision", "audio", "reasoning") if model.get(name)]
    return found + (["tools"] if (model.get("abilities") or {}).get("tools") else [])


def _facts(server: Server) -> list[Known]:
    facts = server.facts
    known = [
        Known(
            "Address", server.base_url, "the settings" if server.from_settings else "stated here"
        ),
        Known("Kind", server.get_kind_display(), "how it answers"),
        Known("Slots", str(server.slots), server.slots_source),
    ]
    if server.context:
        known.append(
            Known("Context of a slot", f"{server.context:,} tokens", server.context_source())
        )
    unified = server.unified()
    if unified is not None:
        cache = "shared by all slots" if unified else "split, each slot has its own"
        known.append(Known("KV cache", cache, server.unified_source()))
    if cap := server.width_cap:
        known.append(Known("Requests at once", f"at most {cap[0]}", cap[1]))
    if facts.get("build"):
        known.append(Known("Build", facts["build"], "the server's /props"))
    for name, label in (("shows_slots", "Shows its slots"), ("shows_metrics", "Shows its metrics")):
        if name in facts:
            known.append(Known(label, "yes" if facts[name] else "no", ""))
    for model in facts.get("models", []) if len(facts.get("models", [])) > 1 else []:
        for name, source in (model.get("sources") or {}).items():
            if name in {"slots", "context", "unified"} and model.get(name) is not None:
                value = model[name]
                known.append(Known(f"{model['id']}: {name}", _plain(value), source))
    return known


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _charts(server: Server, buckets: Sequence[Bucket]) -> list[Chart]:
    """The four charts; a server that only embeds writes nothing and caches nothing."""
    recent = buckets[-NOW_SECONDS // BUCKET_SECONDS :]
    models = server.model_facts
    embeds = bool(models) and all(model.get("embeddings") for model in models)
    charts = [_rate_chart("prompt", "Prompt tokens/s", recent, buckets)]
    if not embeds:
        charts.append(_rate_chart("completion", "Generated tokens/s", recent, buckets))
    waited = sum(bucket.waited for bucket in buckets)
    charts.append(
        Chart(
            "waited", "Requests waiting", str(sum(b.waited for b in recent)), f"{waited:,} in all"
        )
    )
    if not embeds:
        charts.append(
            Chart("cached", "Prompt from cache", _share(recent), f"{_share(buckets)} in all")
        )
    return charts


def _rate_chart(
    name: str, title: str, recent: Sequence[Bucket], buckets: Sequence[Bucket]
) -> Chart:
    most = max((getattr(bucket, name) for bucket in buckets), default=0) / BUCKET_SECONDS
    now = sum(getattr(bucket, name) for bucket in recent) / NOW_SECONDS
    return Chart(name, title, f"{now:,.0f}", f"at most {most:,.0f}")


def _share(buckets: Sequence[Bucket]) -> str:
    prompt = sum(bucket.prompt for bucket in buckets)
    return f"{sum(bucket.cached for bucket in buckets) / prompt * 100:.0f} %" if prompt else "–"


def _series(buckets: Sequence[Bucket]) -> str:
    """Per chart one number per bucket, oldest first; null where there was nothing to count."""
    return json.dumps(
        {
            "start": buckets[0].start if buckets else 0,
            "step": BUCKET_SECONDS,
            "prompt": [bucket.prompt / BUCKET_SECONDS for bucket in buckets],
            "completion": [bucket.completion / BUCKET_SECONDS for bucket in buckets],
            "waited": [bucket.waited for bucket in buckets],
            "cached": [
                round(bucket.cached / bucket.prompt, 3) if bucket.prompt else None
                for bucket in buckets
            ],
        },
        separators=(",", ":"),
    )
