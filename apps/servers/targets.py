"""Chooses the server and model for a request, and stores the defaults of each use."""

import re
import time
from copy import copy
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from apps.llm.addresses import normalised_base_url
from apps.llm.client import Client, client_for
from apps.servers.errors import NoServer
from apps.servers.facts.server_facts import ModelFacts
from apps.servers.models import DefaultServer, Server, State, Use
from apps.servers.models.server import servers_updated

# A default or a server changed by another process is known this much later.
KNOWN_SECONDS = 1.0
UNKNOWN = "default"  # the name that is sent where no model of a server is known
DEMO_MODEL = "workbench-demo"
# Names of models that only embed, for servers that do not report what a model can do.
_EMBEDDING_NAME = re.compile(
    r"embed|(?:^|[/_:-])(?:bge|gte|e5|minilm|sentence-t5)(?:[_:.-]|$)", re.IGNORECASE
)


@dataclass(frozen=True)
class Target:
    """A server and the model to ask it for."""

    server: Server
    model: str

    @property
    def client(self) -> Client:
        return client_for(self.server.endpoint)

    @property
    def is_loaded(self) -> bool:
        """True if it answers without being loaded first, as far as is known."""
        return (
            not self.server.swaps or self.server.model_id(self.model) in self.server.loaded_models
        )

    @property
    def must_be_loaded(self) -> bool:
        """True if its server says that it is not in memory; some say nothing of that."""
        return not self.is_loaded and self.server.facts_of(self.model).state != "unknown"

    @property
    def saves_slots(self) -> bool:
        """True if the server keeps KV caches of this model as files, on disk that it may use."""
        server, facts = self.server, self.server.facts_of(self.model)
        return (
            bool(facts.slot_files and facts.cache_key and settings.SLOT_FILES_BYTES)
            and server.state == State.READY
            and bool(server.facts.shows_slots)
            and self.is_loaded
        )

    @property
    def is_demo(self) -> bool:
        """True for the small model that ships with Workbench and can do little."""
        if not self.server.from_settings:
            return False
        return DEMO_MODEL in self.model or (self.model == UNKNOWN and _starts_demo(self.server))


def _starts_demo(server: Server) -> bool:
    """True for the chat server that `manage.py up` starts, if no model was chosen for it."""
    if not settings.CHAT_DEVICE or settings.CHAT_MODEL:
        return False
    return server.base_url == normalised_base_url(settings.LLM_BASE_URL)


def is_embedding_model(model: ModelFacts) -> bool:
    """True if a model is known to embed: by the server's report, else by its name."""
    if model.embeddings is not None:
        return model.embeddings
    return bool(_EMBEDDING_NAME.search(model.id))


def can_generate(server: Server, model: ModelFacts) -> bool:
    """True if a model can write text, as far as is known.

    By the server's report, else by its name, else by the use of the server, which comes with its
    `defaults` prefetched.
    """
    if model.embeddings is not None or is_embedding_model(model):
        return not is_embedding_model(model)
    return {default.use for default in server.defaults.all()} != {Use.EMBEDDINGS}


def set_default(server: Server, use: Use, model: str = "") -> None:
    """Make this server and model the default of a use; no model: the first that suits the use."""
    stale = Q(fallback=server)
    if use == Use.EMBEDDINGS:  # its fallback was compared with the old model
        stale |= ~Q(server=server, model=model)
    DefaultServer.objects.filter(stale, use=use).update(fallback=None, fallback_model="")
    DefaultServer.objects.update_or_create(use=use, defaults={"server": server, "model": model})


def default_target(use: Use) -> Target:
    """The server and model a use gets when nothing else was chosen.

    Raises:
        NoServer: none is set.
    """
    try:
        default = DefaultServer.objects.select_related("server").get(use=use)
    except DefaultServer.DoesNotExist:
        message = f"No server set for {use.label.lower()}. Choose one under Servers."
        raise NoServer(message) from None
    return choose_target(default.server, default.model, use)


_known: dict[Use, tuple[float, Target]] = {}


def known_default(use: Use) -> Target:
    """Return the default of a use as it was a moment ago: questions come many at a time.

    What this process changes is known at once.

    Raises:
        NoServer: none is set.
    """
    until, target = _known.get(use, (0.0, None))
    if target is None or time.monotonic() >= until:
        target = default_target(use)
        _known[use] = time.monotonic() + KNOWN_SECONDS, target
    return replace(target, server=copy(target.server))  # a request may change what it gets


def forget_defaults() -> None:
    """Read the defaults again."""
    _known.clear()


@receiver([post_save, post_delete, servers_updated], sender=Server)
@receiver([post_save, post_delete], sender=DefaultServer)
def forget_changed_defaults(**_: object) -> None:
    """Read the defaults again: one of them, or a server, was changed here."""
    forget_defaults()
    transaction.on_commit(forget_defaults)  # others read what was there before until then


def choose_target(server: Server, model: str = "", use: Use | None = None) -> Target:
    """`model` at `server`; without one, the first in its list that suits the use.

    Args:
        use: None: anything but embeddings.
    """
    return Target(server, model or _first_model(server, use) or UNKNOWN)


def _first_model(server: Server, use: Use | None) -> str:
    """The first by the server's order, not by what is loaded now.

    A choice that changes between requests would cost the prompt cache and mix models in a job.
    """
    for model in server.model_facts:
        if is_embedding_model(model) == (use == Use.EMBEDDINGS):
            return model.id
    return next(iter(server.model_ids), "")
