"""The model servers people talk to, and what was last seen of them."""

from django.core.validators import RegexValidator
from django.db import models

from apps.core import crypto
from apps.llm.endpoint import Endpoint

# No user name, password or backslash: parsers disagree about which host such an address means.
ADDRESS_PATTERN = r"^https?://[\w.:\[\]-]+(/[\w./~-]*)?$"
ADDRESS = RegexValidator(
    ADDRESS_PATTERN,
    "Enter an address such as http://127.0.0.1:8080/v1.",
)


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
    UNREACHABLE = "unreachable"
    UNAUTHORIZED = "unauthorized"
    UNKNOWN = "unknown"


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

    # What discovery last saw. See `apps.llm.discovery.Facts` for the shape of `facts`.
    kind = models.CharField(max_length=20, choices=Kind, default=Kind.OPENAI)
    state = models.CharField(max_length=20, choices=State, default=State.UNKNOWN)
    facts = models.JSONField(default=dict)
    seen = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.base_url, crypto.decrypt(self.encrypted_key))

    def set_key(self, key: str) -> None:
        self.encrypted_key = crypto.encrypt(key)

    @property
    def slots(self) -> int:
        """How many requests it works on at once: what the server says, else a person, else one."""
        return self.facts.get("slots") or self.parallel or 1

    @property
    def slots_source(self) -> str:
        if self.facts.get("slots"):
            return str(self.facts["slots_source"])
        return "stated by you" if self.parallel else "assumed"

    @property
    def context(self) -> int | None:
        """Tokens one slot holds, where the server says."""
        tokens: int | None = self.facts.get("context")
        return tokens

    @property
    def model_ids(self) -> list[str]:
        return [model["id"] for model in self.facts.get("models", [])]


class DefaultServer(models.Model):
    """Which server and model a use gets when nothing else was chosen."""

    use = models.CharField(max_length=20, choices=Use, unique=True)
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="defaults")
    model = models.CharField(
        max_length=300, blank=True, help_text="Empty: the first model the server names."
    )

    def __str__(self) -> str:
        return f"{self.use}: {self.server}"
