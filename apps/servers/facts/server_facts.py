"""The facts about a model server and its models, each with its source, and their JSON (pure).

A source is text for the page: "the server's /props". A value that nobody reported is None and has
no source.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from apps.llm.thinking import ThinkingSupport

# Facts of a model that stay true while it is not in memory.
LASTING = (
    *("slots", "context", "context_trained", "pool", "unified", "embeddings"),
    *("vision", "audio", "reasoning", "thinking_switch", "thinking_off", "abilities", "weights"),
    *("sampling", "slot_files", "cache_key"),
)
REMEMBERED = " (from its last run)"
UNKNOWN: tuple[Any, ...] = (None, "", {}, [])
IN_MEMORY = frozenset({"loaded", "sleeping"})


@dataclass
class ModelFacts:
    """One model that a server lists."""

    id: str
    name: str = ""
    """The display name, where the server gives one."""
    aliases: list[str] = field(default_factory=list)
    state: str = "unknown"
    """loaded, unloaded, loading, unloading, sleeping, failed, downloading; unknown: a proxy that
    reports no state."""
    error: str = ""
    slots: int | None = None
    context: int | None = None
    """Tokens per slot."""
    context_trained: int | None = None
    pool: int | None = None
    """Tokens of the KV cache that its slots share, where they share one of known size."""
    unified: bool | None = None
    embeddings: bool | None = None
    vision: bool | None = None
    audio: bool | None = None
    reasoning: bool | None = None
    """True if its chat template has thinking."""
    thinking_switch: bool | None = None
    """True if a request can turn thinking off or down."""
    thinking_off: bool | None = None
    """True if a request can turn thinking off; else it can only set the effort."""
    abilities: dict[str, bool] = field(default_factory=dict)
    """llama-server's chat_template_caps, without "supports_"."""
    sampling: dict[str, float] = field(default_factory=dict)
    """Its default sampling parameters, by their names in requests."""
    weights: list[int] = field(default_factory=list)
    """Parameters, bytes and embedding width, where reported: they tell models of one name apart."""
    slot_files: bool | None = None
    """True if its server saves and restores slots as files (--slot-save-path)."""
    cache_key: str = ""
    """Changes with whatever makes an old KV cache wrong: weights, template, adapters, build."""
    actions: list[str] = field(default_factory=list)
    """The actions the server offers for it: load, unload, warm, delete."""
    ttl: int | None = None
    """Idle seconds after which llama-swap unloads it."""
    asked: str = ""
    """Fingerprint of the command whose process was asked for its /props: once is enough, and a
    request counts as use, which would keep the model in memory."""
    sources: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{name: value for name, value in stored.items() if name in _MODEL_FIELDS})

    @property
    def is_loaded(self) -> bool:
        """True if it answers without being loaded first; a sleeping server wakes up."""
        return self.state in IN_MEMORY

    @property
    def thinking(self) -> ThinkingSupport:
        return ThinkingSupport(self.reasoning, self.thinking_switch, self.thinking_off)

    def learn(self, source: str, **values: Any) -> None:
        """Set what is not known yet: the first report of a fact counts."""
        for name, value in values.items():
            if value in UNKNOWN or getattr(self, name) not in UNKNOWN:
                continue
            setattr(self, name, value)
            self.sources[name] = source

    def remember(self, earlier: "ModelFacts") -> None:
        """Take lasting facts from an earlier probe that this one could not see or did not ask."""
        note = "" if self.is_loaded else REMEMBERED
        for name in LASTING:
            source = earlier.sources.get(name, "").removesuffix(REMEMBERED)
            if source:
                self.learn(source + note, **{name: getattr(earlier, name)})


_MODEL_FIELDS = frozenset(field.name for field in fields(ModelFacts))


@dataclass(frozen=True)
class Observation:
    """A fact that requests have shown."""

    value: bool
    source: str


@dataclass(frozen=True)
class MeasuredWidth:
    """Requests that a server answers at once, as the speed of its answers has shown."""

    value: int
    at: str
    """When it was measured, ISO 8601."""
    how: str
    """Why it is not more, as a phrase."""
    is_settled: bool
    """False while the search for it goes on."""


@dataclass(frozen=True)
class BestWidth:
    """Rows in parallel that were fastest for a model, when somebody measured its server."""

    value: int
    slots: int
    """The slots that the server had then: with others it says nothing."""
    at: str
    """ISO 8601."""
    mixed: int | None = None
    """Rows in parallel while people use the server too; None: not measured."""


@dataclass
class ServerFacts:
    """All that is known of a server: what one probe reported, and what requests have shown."""

    state: str = "unknown"
    kind: str = "openai"
    models: list[ModelFacts] = field(default_factory=list)
    slots: int | None = None
    """Slots of the server as a whole; None where each model has its own."""
    context: int | None = None
    unified: bool | None = None
    models_at_once: int | None = None
    """The most models in memory together."""
    concurrency_limit: tuple[int, str] | None = None
    """The most requests it takes at a time for one model, and why."""
    sleeping: bool = False
    shows_slots: bool | None = None
    shows_metrics: bool | None = None
    keyless: bool | None = None
    """True if it answers requests without a key."""
    build: str = ""
    process: str = ""
    """Changes when it is started again, where the build tells."""
    advice: list[str] = field(default_factory=list)
    """Sentences for whoever runs the server."""
    error: str = ""
    """The reason why it is not ready, as a sentence."""
    is_downloading: bool = False
    """True while an embedded server waits for the download of its model; `error` says how far."""
    downloaded: float | None = None
    """The share of that download, 0 to 1; None while its size is not known."""
    is_starting: bool = False
    """True while an embedded server has its model, and does not answer yet."""
    sources: dict[str, str] = field(default_factory=dict)
    observed_unified: dict[str, Observation] = field(default_factory=dict)
    """By scope: a KV cache shared by all slots, as requests have shown it."""
    measured_widths: dict[str, MeasuredWidth] = field(default_factory=dict)
    """By model."""
    best_widths: dict[str, BestWidth] = field(default_factory=dict)
    """By model."""
    refused_fields: dict[str, list[str]] = field(default_factory=dict)
    """By model: the fields of requests that the server has refused, in alphabetical order."""
    canaries: dict[str, str] = field(default_factory=dict)
    """By model: the answer to the fixed prompt by which models are compared."""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The facts as `to_json` wrote them, now or in an earlier version."""
        known = {_FIELD_OF.get(key, key): value for key, value in stored.items()}
        facts = cls(**{name: value for name, value in known.items() if name in _STORED})
        facts.models = [ModelFacts.from_json(model) for model in known.get("models") or []]
        if limit := known.get("concurrency_limit"):
            facts.concurrency_limit = (int(limit[0]), str(limit[1]))
        facts.observed_unified = {
            scope: Observation(bool(seen["value"]), str(seen["source"]))
            for scope, seen in (known.get("observed_unified") or {}).items()
        }
        facts.measured_widths = {
            model: MeasuredWidth(**width)
            for model, width in (known.get("measured_widths") or {}).items()
        }
        facts.best_widths = {
            model: BestWidth(**width) for model, width in (known.get("best_widths") or {}).items()
        }
        facts.sources = {_FIELD_OF.get(key, key): value for key, value in facts.sources.items()}
        if "slots_source" in stored:  # of versions that stored no sources
            facts.sources = {"slots": stored["slots_source"], **facts.sources}
        return facts

    def to_json(self) -> dict[str, Any]:
        """For the database, without what has a column of its own."""
        stored = asdict(self)
        del stored["state"], stored["kind"]
        return {_KEY_OF.get(name, name): value for name, value in stored.items()}

    def model(self, name: str = "") -> ModelFacts | None:
        """A model by id or alias; without a name, the first."""
        if not name:
            return self.models[0] if self.models else None
        return next((m for m in self.models if name == m.id or name in m.aliases), None)

    def learn(self, source: str, **values: Any) -> None:
        """Set what was reported."""
        for name, value in values.items():
            if value is not None:
                setattr(self, name, value)
                self.sources[name] = source


# Keys of the stored JSON that differ from the field's name.
_KEY_OF = {
    "models_at_once": "at_once",
    "concurrency_limit": "width_cap",
    "observed_unified": "seen_unified",
    "refused_fields": "refused",
}
_FIELD_OF = {key: name for name, key in _KEY_OF.items()}
_STORED = frozenset(field.name for field in fields(ServerFacts)) - {"state", "kind"}
