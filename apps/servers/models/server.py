"""A model server, its address and key, and its last known facts."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.validators import RegexValidator
from django.db import models, transaction
from django.dispatch import Signal

from apps.core import crypto
from apps.llm.addresses import ADDRESS_PATTERN, EXAMPLE, canonical_address
from apps.llm.endpoint import Endpoint
from apps.runtime.async_db import in_db
from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.models.choices import Kind, State
from apps.servers.models.server_capacity import ServerCapacity

ADDRESS = RegexValidator(ADDRESS_PATTERN, EXAMPLE)

logger = logging.getLogger(__name__)


servers_updated = Signal()
"""Rows were changed by `update`, of which Django itself sends no signal."""


class ServerQuerySet(models.QuerySet["Server"]):
    def update(self, **changes: Any) -> int:
        updated = super().update(**changes)
        servers_updated.send(sender=Server)
        return updated

    @transaction.atomic
    def change_facts(self, pk: int, change: Callable[[ServerFacts], None]) -> None:
        """Change some facts of one server; those that others change at the same time stay."""
        server = self.select_for_update().filter(pk=pk).first()
        if server is None:
            return
        facts = ServerFacts.from_json(server.stored_facts)
        change(facts)
        server.stored_facts = facts.to_json()
        server.save(update_fields=["stored_facts"])

    async def add_refused_fields(self, pk: int, model: str, names: frozenset[str]) -> None:
        """Store which fields of a request for this model the server refuses."""

        def add(facts: ServerFacts) -> None:
            known = facts.refused_fields.get(model, [])
            facts.refused_fields[model] = sorted(names.union(known))

        await in_db(self.change_facts, pk, add)


class Server(ServerCapacity, models.Model):
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

    model_group = models.CharField(
        max_length=100,
        blank=True,
        default="",
        help_text="Servers of one group serve the same model, whatever they call it.",
    )

    # The last probe's outcome, see `apps.servers.probing.refresh`.
    kind = models.CharField(max_length=20, choices=Kind, default=Kind.OPENAI)
    state = models.CharField(max_length=20, choices=State, default=State.UNKNOWN)
    state_since = models.DateTimeField(null=True, blank=True)
    stored_facts = models.JSONField(default=dict, help_text="See `facts`.")
    checked_at = models.DateTimeField(null=True, blank=True, help_text="Start of the last probe.")
    next_check_at = models.DateTimeField(
        null=True, blank=True, help_text="No probe before this time; empty: by the facts' age."
    )
    failed_checks = models.PositiveIntegerField(default=0, help_text="Failed probes in a row.")

    objects = ServerQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def facts(self) -> ServerFacts:
        """The parsed `stored_facts`. Write changes back with `ServerFacts.to_json`."""
        parsed: tuple[dict[str, Any], ServerFacts] | None = vars(self).get("_parsed_facts")
        if parsed is None or parsed[0] is not self.stored_facts:
            parsed = self.stored_facts, ServerFacts.from_json(self.stored_facts)
            vars(self)["_parsed_facts"] = parsed
        return parsed[1]

    @property
    def address(self) -> str:
        """The same for two entries of one server; `base_url` is as it was entered."""
        return canonical_address(self.base_url)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(
            self.base_url,
            self._key(),
            tells_progress=self.kind != Kind.OPENAI,
            refuses={model: frozenset(names) for model, names in self.facts.refused_fields.items()},
            on_refused=partial(Server.objects.add_refused_fields, self.pk),
        )

    def _key(self) -> str:
        """Return the API key, or "" after SECRET_KEY changed: the server then rejects the request,
        which every page and error already explains.
        """
        try:
            return crypto.decrypt(self.encrypted_key)
        except crypto.SecretLost:
            logger.warning("%s: the stored API key cannot be read, SECRET_KEY has changed.", self)
            return ""

    def set_key(self, key: str) -> None:
        self.encrypted_key = crypto.encrypt(key)

    def move_to(self, base_url: str) -> bool:
        """Change the address and delete the key, which belongs to the old one.

        Returns: True if there was a key to delete.
        """
        had_key = bool(self.encrypted_key) and base_url != self.base_url
        if base_url != self.base_url:
            self.encrypted_key = ""
        self.base_url = base_url
        return had_key

    def forget_facts(self) -> None:
        """Drop all facts: it is another server now, or the same with another key."""
        self.state, self.state_since, self.stored_facts = State.UNKNOWN, None, {}
        self.checked_at, self.next_check_at, self.failed_checks = None, None, 0

    # --- Models -----------------------------------------------------------------

    @property
    def model_facts(self) -> list[ModelFacts]:
        return self.facts.models

    @property
    def model_ids(self) -> list[str]:
        return [model.id for model in self.model_facts]

    def model(self, name: str = "") -> ModelFacts | None:
        """The facts about a model by id or alias; without a name, about the first."""
        return self.facts.model(name)

    def facts_of(self, name: str = "") -> ModelFacts:
        """As `model`; a model that the server does not list has no known facts."""
        return self.model(name) or ModelFacts(name)

    def model_id(self, name: str) -> str:
        """The id of a model that was named by an alias."""
        found = self.model(name)
        return found.id if found and name else name

    @property
    def swaps(self) -> bool:
        """True if only some of its models fit into memory at once."""
        return self.kind in {Kind.ROUTER, Kind.LLAMA_SWAP}

    @property
    def loaded_models(self) -> list[str]:
        """The models that answer without being loaded first."""
        if not self.swaps:
            return self.model_ids
        return [model.id for model in self.model_facts if model.is_loaded]

    @property
    def models_at_once(self) -> int:
        """The most models in memory together; if not reported, as many as are loaded now."""
        return self.facts.models_at_once or max(1, len(self.loaded_models))

    @property
    def continues_messages(self) -> bool:
        """True if it continues an assistant's message at the end of the prompt.

        llama.cpp does; behind a proxy there may be anything.
        """
        return self.kind in {Kind.LLAMA_SERVER, Kind.ROUTER}

    def slot_scope(self, model: str = "") -> str:
        """The owner of the slots that a request uses: "" the server, else this model's process."""
        return self.model_id(model) if self.swaps else ""
