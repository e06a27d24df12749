"""What is known of a server and its models, in rows for people: a value, and who said so."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.servers.facts import capacity
from apps.servers.models import Server
from apps.servers.services import Action, Activity

MODEL_TONES = {"loaded": "good", "failed": "bad", "loading": "warn", "unloading": "warn"}


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
    button: str
    """Which button was pressed for it: "warm" or "power"."""
    actions: list[str]


@dataclass(frozen=True)
class Known:
    """A fact, and who said so."""

    label: str
    value: str
    source: str


def models(server: Server, activities: Mapping[str, Activity]) -> list[ModelLine]:
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
                button="warm" if activity and activity.action == Action.WARM else "power",
                actions=[] if doing else _actions(model, state),
            )
        )
    return lines


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
"""What is shown of a model, by the key of the fact."""

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
    context = model.get("context") or (None if server.swaps else server.context)
    trained = model.get("context_trained")
    if not context:
        return f"trained with {trained:,} tokens" if trained else ""
    beyond = f", trained with {trained:,}" if trained and trained != context else ""
    return f"{context:,} tokens per slot{beyond}"


def _abilities(model: Mapping[str, Any]) -> list[str]:
    found = [name for name in ("embeddings", "vision", "audio", "reasoning") if model.get(name)]
    return found + (["tools"] if (model.get("abilities") or {}).get("tools") else [])


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


def facts_of(server: Server) -> list[Known]:
    facts = server.facts
    known = [
        Known("Address", server.base_url, "the settings" if server.from_settings else "set here"),
        Known("Kind", server.get_kind_display(), "detected"),
        Known("Slots", str(server.slots), server.slots_source),
    ]
    if server.context:
        known.append(
            Known("Context per slot", f"{server.context:,} tokens", server.context_source())
        )
    if server.slots > 1:
        cache = KV_CACHE[server.unified()]
        known.append(Known("KV cache", cache, server.unified_source() or capacity.ASSUMED))
    if server.swaps and facts.get("at_once"):
        sources: Mapping[str, str] = facts.get("sources") or {}
        most = f"at most {facts['at_once']}"
        known.append(Known("Models in memory", most, sources.get("at_once", "")))
    if cap := server.width_cap:
        known.append(Known("Max parallel requests", f"{cap[0]}", cap[1]))
    if facts.get("build"):
        known.append(Known("Build", facts["build"], "the server's /props"))
    for name, label in SWITCHES.items():
        if facts.get(name) is not None:
            known.append(Known(label, _plain(facts[name]), "detected"))
    for name, refused in sorted(server.refused.items()):
        label = f"{name}: fields not sent"
        known.append(Known(label, ", ".join(refused), "the server refused them"))
    for model in server.model_facts:
        known += _facts_of_model(server, model)
    return known


def _facts_of_model(server: Server, model: Mapping[str, Any]) -> list[Known]:
    # What all models share is the server's own and stands above.
    shared = set() if server.swaps else {"slots", "context", "unified"}
    sources: Mapping[str, str] = model.get("sources") or {}
    return [
        Known(f"{model['id']}: {label}", _plain(model[name]), sources.get(name, ""))
        for name, label in MODEL_FACTS.items()
        if name not in shared and model.get(name) is not None
    ]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
