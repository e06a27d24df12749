"""Rows for the page about a server's facts and models, each with its source."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zlib import crc32

from django.conf import settings
from django.utils.timezone import localtime

from apps.servers.facts import capacity
from apps.servers.facts.basis import describe
from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.models import Kind, Server
from apps.servers.services import CHAT_SERVER, Action, ModelActivity

MODEL_TONES = {
    **{"loaded": "good", "failed": "bad"},
    **dict.fromkeys(("loading", "unloading", "downloading"), "warn"),
}


@dataclass(frozen=True)
class ModelRow:
    """One model of a server and the actions for it."""

    id: str
    state: str
    tone: str
    error: str
    context: str
    abilities: list[str]
    running: str
    """The action that runs now, as a phrase: "loading, 43%"."""
    waiting: str
    """What that action waits for, as a sentence."""
    can_cancel: bool
    """It is loading or downloading, and unloading would end that."""
    button: str
    """The button of that action: "warm" or "power"."""
    actions: list[str]

    @property
    def key(self) -> str:
        """For ids of the page: the same wherever the row stands, so the focus stays with it."""
        return f"{crc32(self.id.encode()):x}"


@dataclass(frozen=True)
class FactRow:
    """A fact and how it is known."""

    label: str
    value: str
    source: str

    @property
    def basis(self) -> str:
        """Reported, measured, set or assumed, and by what."""
        return describe(self.source)


def model_rows(server: Server, activities: Mapping[str, ModelActivity]) -> list[ModelRow]:
    rows = []
    listed = set(server.model_ids)
    downloads = [
        ModelFacts(name, state="failed" if activity.error else "downloading")
        for name, activity in activities.items()
        if activity.action is Action.DOWNLOAD and name not in listed
    ]
    for model in [*downloads, *server.model_facts]:
        activity = activities.get(model.id)
        state = model.state
        running = _running(activity) if activity and not activity.error else ""
        rows.append(
            ModelRow(
                id=model.id,
                # A proxy does not report what is in memory: no badge is better than "unknown".
                state="" if state == "unknown" else state,
                tone=MODEL_TONES.get(state, ""),
                error=(activity.error if activity else "") or model.error,
                context=_context(model, server),
                abilities=model_abilities(model),
                running=running,
                waiting=activity.wait_reason if activity else "",
                can_cancel=bool(running) and activity is not None and _ends(activity, model),
                button="warm" if activity and activity.action == Action.WARM else "power",
                actions=[] if running else _actions(model, state),
            )
        )
    return rows


MODEL_FACTS = {
    "slots": "slots",
    "context": "context per slot (tokens)",
    "context_trained": "training context (tokens)",
    "unified": "shared KV cache",
    "embeddings": "embeddings",
    "vision": "vision",
    "audio": "audio",
    "reasoning": "reasoning",
    "thinking_switch": "thinking can be turned on and off",
    "ttl": "unloads after (idle seconds)",
}
"""The label of each fact about a model."""

_GERUNDS = {
    Action.LOAD: "loading",
    Action.UNLOAD: "unloading",
    Action.WARM: "warming up",
    Action.DOWNLOAD: "downloading",
    Action.DELETE: "deleting",
}


def _ends(activity: ModelActivity, model: ModelFacts) -> bool:
    """True if unloading ends this action."""
    return activity.action is Action.DOWNLOAD or (
        activity.action is Action.LOAD and "unload" in model.actions
    )


def _running(activity: ModelActivity) -> str:
    share = "" if activity.share is None else f", {activity.share:.0%}"
    return f"{_GERUNDS[activity.action]}{share}"


def _actions(model: ModelFacts, state: str) -> list[str]:
    """The actions that the server offers and that make sense in this state."""
    useless = {
        "loaded": {"load"},
        "sleeping": {"load"},
        "unloaded": {"unload", "warm"},
        "failed": {"unload", "warm"},
    }.get(state, set())
    return [action for action in model.actions if action not in useless]


def _context(model: ModelFacts, server: Server) -> str:
    context = model.context or (None if server.swaps else server.context)
    trained = model.context_trained
    if not context:
        return f"trained with {trained:,} tokens" if trained else ""
    beyond = f", trained with {trained:,}" if trained and trained != context else ""
    return f"{context:,} tokens per slot{beyond}"


def model_abilities(model: ModelFacts) -> list[str]:
    """Return what a model is known to do besides text, a word each."""
    names = ("embeddings", "vision", "audio", "reasoning")
    return [name for name in names if getattr(model, name)] + (
        ["tools"] if model.abilities.get("tools") else []
    )


KV_CACHE = {
    True: "shared by all slots",
    False: "split (one per slot)",
    None: "taken to be split until requests outgrow it together",
}
SWITCHES = {
    "shows_slots": "Reports slots",
    "shows_metrics": "Reports metrics",
    "keyless": "Works without a key",
}


def fact_rows(server: Server) -> list[FactRow]:
    facts = server.facts
    rows = [
        FactRow("Address", server.base_url, "the settings" if server.from_settings else "set here"),
        FactRow("Kind", server.get_kind_display(), "its answers"),
        FactRow("Slots", str(server.slots), server.slots_source()),
    ]
    if server.context:
        rows.append(
            FactRow("Context per slot", f"{server.context:,} tokens", server.context_source())
        )
    # Servers that are not llama.cpp have no cache that one would have to know the shape of.
    if server.slots > 1 and (server.kind != Kind.OPENAI or server.unified() is not None):
        cache = KV_CACHE[server.unified()]
        rows.append(FactRow("KV cache", cache, server.unified_source() or capacity.ASSUMED))
    if server.swaps and facts.models_at_once:
        most = f"at most {facts.models_at_once}"
        rows.append(FactRow("Models in memory", most, facts.sources.get("models_at_once", "")))
    if limit := server.concurrency_limit:
        rows.append(FactRow("Max parallel requests", f"{limit[0]}", limit[1]))
    if settings.CHAT_DEVICE and server.from_settings and server.name == CHAT_SERVER:
        rows.append(FactRow("Computes on", settings.CHAT_DEVICE, "its log at the start"))
    if facts.build:
        rows.append(FactRow("Build", facts.build, "the server's /props"))
    for name, label in SWITCHES.items():
        value = getattr(facts, name)
        if value is not None:
            rows.append(FactRow(label, _plain(value), "its answers"))
    rows += _width_rows(facts)
    for name, refused in sorted(facts.refused_fields.items()):
        label = f"{name}: fields not sent"
        rows.append(FactRow(label, ", ".join(refused), "the server refused them"))
    for model in server.model_facts:
        rows += _model_fact_rows(server, model)
    return rows


def _width_rows(facts: ServerFacts) -> list[FactRow]:
    """Return the widths that were measured for each model, with when and how."""
    rows = []
    for name, width in sorted(facts.measured_widths.items()):
        at = localtime(datetime.fromisoformat(width.at)).strftime("%-d %b %Y, %H:%M")
        source = f"measured: {width.how} ({at})"
        rows.append(FactRow(f"{name}: requests at once", str(width.value), source))
    for name, best in sorted(facts.best_widths.items()):
        at = localtime(datetime.fromisoformat(best.at)).strftime("%-d %b %Y, %H:%M")
        source = f"measured as the fastest with {best.slots} slots ({at})"
        mixed = f", {best.mixed} while people use the server" if best.mixed else ""
        rows.append(FactRow(f"{name}: rows in parallel", f"{best.value}{mixed}", source))
    return rows


def _model_fact_rows(server: Server, model: ModelFacts) -> list[FactRow]:
    # Facts that all models share are the server's own rows.
    shared = set() if server.swaps else {"slots", "context", "unified"}
    return [
        FactRow(f"{model.id}: {label}", _plain(getattr(model, name)), model.sources.get(name, ""))
        for name, label in MODEL_FACTS.items()
        if name not in shared and getattr(model, name) is not None
    ]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
