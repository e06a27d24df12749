"""What is known of a model server and its models, and from where (pure).

Every value stands beside its source, in the words the page shows: "the server's /props". A value
that nobody told is None and has no source.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

# What stays true of a model while it is not in memory.
LASTING = (
    *("slots", "context", "context_trained", "pool", "unified", "embeddings"),
    *("vision", "audio", "reasoning", "thinking_switch", "thinking_off", "abilities", "weights"),
)
REMEMBERED = " (from its last run)"


@dataclass
class ModelFacts:
    """One model a server names."""

    id: str
    name: str = ""
    """For people, where the server gives one."""
    aliases: list[str] = field(default_factory=list)
    state: str = "unknown"
    """loaded, unloaded, loading, unloading, sleeping, failed, downloading; unknown: a proxy that
    does not say."""
    error: str = ""
    slots: int | None = None
    context: int | None = None
    """Tokens one slot holds."""
    context_trained: int | None = None
    pool: int | None = None
    """Tokens of the KV cache that its slots share, where they share one of known size."""
    unified: bool | None = None
    embeddings: bool | None = None
    """None: nobody said."""
    vision: bool | None = None
    audio: bool | None = None
    reasoning: bool | None = None
    """Whether its chat template knows of thinking."""
    thinking_switch: bool | None = None
    """Whether thinking can be turned off or down for one request."""
    thinking_off: bool | None = None
    """Whether one request can do without any; else it can only be told how much effort to make."""
    abilities: dict[str, bool] = field(default_factory=dict)
    """llama-server's chat_template_caps, without "supports_"."""
    weights: list[int] = field(default_factory=list)
    """Parameters, bytes and width of the model, where the server says: they tell one model from
    another of the same name."""
    actions: list[str] = field(default_factory=list)
    """What the server does with it on request: load, unload, warm."""
    ttl: int | None = None
    """Seconds of quiet after which llama-swap unloads it."""
    asked: str = ""
    """Fingerprint of the command whose process was asked for its /props: once is enough, and a
    request counts as use, which would keep the model in memory."""
    sources: dict[str, str] = field(default_factory=dict)

    def learn(self, source: str, **values: Any) -> None:
        """Takes what is not known yet; what was told first counts."""
        for name, value in values.items():
            if value in (None, {}, []) or getattr(self, name) not in (None, {}, []):
                continue
            setattr(self, name, value)
            self.sources[name] = source

    def remember(self, earlier: dict[str, Any]) -> None:
        """Takes from an earlier look what lasts and cannot be seen now, or is not asked again."""
        note = "" if self.state in {"loaded", "sleeping"} else REMEMBERED
        for name in LASTING:
            source = str(earlier.get("sources", {}).get(name, "")).removesuffix(REMEMBERED)
            if source:
                self.learn(source + note, **{name: earlier.get(name)})


@dataclass
class Facts:
    """What one look at a server showed."""

    state: str
    kind: str = "openai"
    models: list[ModelFacts] = field(default_factory=list)
    slots: int | None = None
    """Of the server as a whole; None where each model has its own."""
    context: int | None = None
    unified: bool | None = None
    at_once: int | None = None
    """How many of its models are in memory together at most."""
    width_cap: tuple[int, str] | None = None
    """Most requests it takes at a time for one model, and why."""
    sleeping: bool = False
    shows_slots: bool = False
    shows_metrics: bool = False
    keyless: bool | None = None
    """Whether it was asked without a key and answered."""
    build: str = ""
    advice: list[str] = field(default_factory=list)
    """Sentences for who runs the server."""
    error: str = ""
    """Why it is not ready, as a sentence."""
    sources: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For the database, without what has a column of its own."""
        facts = asdict(self)
        del facts["state"], facts["kind"]
        return facts | {"slots_source": self.sources.get("slots", "")}

    def learn(self, source: str, **values: Any) -> None:
        """Takes what was told."""
        for name, value in values.items():
            if value is not None:
                setattr(self, name, value)
                self.sources[name] = source
