"""The model servers people talk to, and what was last seen of them."""

from functools import partial
from typing import Any

from django.core.validators import RegexValidator
from django.db import models

from apps.core import crypto
from apps.llm.addresses import ADDRESS_PATTERN, EXAMPLE
from apps.llm.endpoint import Endpoint
from apps.servers.facts import capacity, learned

ADDRESS = RegexValidator(ADDRESS_PATTERN, EXAMPLE)


class Kind(models.TextChoices):
    LLAMA_SERVER = "llama-server", "llama-server"
    ROUTER = "router", "llama-server router"
    LLAMA_SWAP = "llama-swap", "llama-swap"
    OLLA = "olla", "Olla"
    LITELLM = "litellm", "LiteLLM"
    OPENAI = "openai", "OpenAI-compatible"


class State(models.TextChoices):
    READY = "ready"
    LOADING = "loading"
    UNREACHABLE = "unreachable", "Offline"
    UNAUTHORIZED = "unauthorized", "Key rejected"
    UNKNOWN = "unknown", "Not checked"
    STUCK = "stuck"
    """Says OK and gives no token. Shown, never stored: see `apps.servers.liveness`."""


class Use(models.TextChoices):
    """What a server is asked for. Each use has one default server and model."""

    CHAT = "chat"
    EMBEDDINGS = "embeddings"
    GENERATION = "generation"


class Server(models.Model):
    """One address that speaks the OpenAI protocol. Shared by all users, managed by staff."""

    name = models.CharField(max_length=100, unique=True)
    # Not a URLField: it refuses the host names of a Compose file ("http://llama-swap:8080").
    base_url = models.CharField(max_length=500, validators=[ADDRESS], help_text="Ends in /v1")
    encrypted_key = models.TextField(blank=True, default="")
    parallel = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Slots, stated by a person where the server does not say."
    )
    from_settings = models.BooleanField(
        default=False, help_text="Named by LLM_BASE_URL or EMBED_BASE_URL and kept in step with it."
    )
    created = models.DateTimeField(auto_now_add=True)

    context_stated = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens of one slot, where the server does not say."
    )
    kv_unified = models.BooleanField(
        null=True, blank=True, help_text="Whether its slots share one KV cache, stated by a person."
    )

    # What discovery last saw. See `apps.servers.facts.server_facts.Facts` for the shape of `facts`.
    kind = models.CharField(max_length=20, choices=Kind, default=Kind.OPENAI)
    state = models.CharField(max_length=20, choices=State, default=State.UNKNOWN)
    state_since = models.DateTimeField(null=True, blank=True)
    facts = models.JSONField(default=dict)
    seen = models.DateTimeField(null=True, blank=True, help_text="When the last look began.")
    next_look = models.DateTimeField(
        null=True, blank=True, help_text="Not to be asked again before; empty: by the facts' age."
    )
    failures = models.PositiveIntegerField(default=0, help_text="Looks in a row that failed.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(
            self.base_url,
            crypto.decrypt(self.encrypted_key),
            tells_progress=self.kind != Kind.OPENAI,
            refuses={model: frozenset(names) for model, names in self.refused.items()},
            on_refused=partial(learned.keep_refused, self.pk),
        )

    @property
    def refused(self) -> dict[str, list[str]]:
        """By model: the fields of requests that the server has refused, in alphabetical order."""
        found: dict[str, list[str]] = self.facts.get(learned.REFUSED, {})
        return found

    def set_key(self, key: str) -> None:
        self.encrypted_key = crypto.encrypt(key)

    def move_to(self, base_url: str) -> bool:
        """Gives it another address. The key was for the old one: it is forgotten, never sent to the
        new one. Returns whether there was a key to forget."""
        had_key = bool(self.encrypted_key) and base_url != self.base_url
        if base_url != self.base_url:
            self.encrypted_key = ""
        self.base_url = base_url
        return had_key

    def forget_facts(self) -> None:
        """It is another server now, or the same with another key."""
        self.state, self.state_since, self.facts = State.UNKNOWN, None, {}
        self.seen, self.next_look, self.failures = None, None, 0

    # --- What is known of it. `capacity` says how it follows from the facts. ----

    @property
    def slots(self) -> int:
        """How many requests it works on at once: what the server says, else a person, else one."""
        return self.width()

    @property
    def slots_source(self) -> str:
        return self.width_source()

    @property
    def context(self) -> int | None:
        """Tokens one slot holds."""
        return self.context_of()

    @property
    def model_facts(self) -> list[dict[str, Any]]:
        """Each as `apps.servers.facts.server_facts.ModelFacts`."""
        found: list[dict[str, Any]] = self.facts.get("models", [])
        return found

    @property
    def model_ids(self) -> list[str]:
        return [model["id"] for model in self.model_facts]

    @property
    def swaps(self) -> bool:
        """Whether only some of its models fit into memory at once."""
        return self.kind in {Kind.ROUTER, Kind.LLAMA_SWAP}

    @property
    def goes_on(self) -> bool:
        """Whether it continues an assistant's message that the prompt ends with.

        llama.cpp does; behind a proxy there may be anything.
        """
        return self.kind in {Kind.LLAMA_SERVER, Kind.ROUTER}

    @property
    def loaded_models(self) -> list[str]:
        """Models that answer without being loaded first."""
        if not self.swaps:
            return self.model_ids
        return [m["id"] for m in self.model_facts if m.get("state") in {"loaded", "sleeping"}]

    @property
    def models_at_once(self) -> int:
        """How many of its models it holds in memory together; where it does not say, as many as
        were seen there."""
        return self.facts.get("at_once") or max(1, len(self.loaded_models))

    def model(self, name: str = "") -> dict[str, Any] | None:
        """The facts of a model by id or alias; without a name, of the first."""
        return capacity.model(self, name)

    def model_id(self, name: str) -> str:
        """The id of a model that was named by an alias."""
        found = capacity.model(self, name)
        return str(found["id"]) if found and name else name

    def scope(self, model: str = "") -> str:
        """Whose slots a request takes: "" the server's, else those of this model's own process."""
        return self.model_id(model) if self.swaps else ""

    @property
    def width_cap(self) -> tuple[int, str] | None:
        """Most requests at a time for one model, slots or not, and why."""
        return capacity.width_cap(self)

    def width(self, model: str = "") -> int:
        """How many requests for a model to have in flight: its slots, never more than the cap."""
        return capacity.width(self, model).value

    def width_source(self, model: str = "") -> str:
        return capacity.width(self, model).source

    def context_of(self, model: str = "") -> int | None:
        """Tokens one slot of a model holds."""
        return capacity.context(self, model).value

    def context_source(self, model: str = "") -> str:
        return capacity.context(self, model).source

    def unified(self, model: str = "") -> bool | None:
        """Whether the slots share one KV cache; None where nothing tells."""
        return capacity.unified(self, model).value

    def unified_source(self, model: str = "") -> str:
        return capacity.unified(self, model).source

    @property
    def advice(self) -> list[str]:
        """What who runs the server could do, as sentences."""
        return capacity.advice(self)

    def pool(self, model: str = "") -> int | None:
        """Tokens that all requests in flight share; None when each slot has its own share."""
        return capacity.pool(self, model)


class DefaultServer(models.Model):
    """Which server and model a use gets when nothing else was chosen."""

    use = models.CharField(max_length=20, choices=Use, unique=True)
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="defaults")
    model = models.CharField(
        max_length=300, blank=True, help_text="Empty: the first that suits the use."
    )

    def __str__(self) -> str:
        return f"{self.use}: {self.server}"
