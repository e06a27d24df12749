"""Adding, finding and looking at model servers."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.db import in_db
from apps.llm import discovery
from apps.llm.client import Client, client_for
from apps.llm.models import DefaultServer, Server, State, Use

FRESH_FOR = timedelta(seconds=15)
DEMO_MODEL = "workbench-demo"

SETTINGS_SERVERS = (
    # name, settings of its address and key, what it is the default for
    ("Chat server", "LLM_BASE_URL", "LLM_API_KEY", (Use.CHAT, Use.GENERATION)),
    ("Embedding server", "EMBED_BASE_URL", "EMBED_API_KEY", (Use.EMBEDDINGS,)),
)


class NoServer(Exception):
    """No server was chosen for this use. The message says where to do it."""


@dataclass(frozen=True)
class Target:
    """A server and the model to ask it for."""

    server: Server
    model: str

    @property
    def client(self) -> Client:
        return client_for(self.server.endpoint)

    @property
    def is_demo(self) -> bool:
        """Whether it is the small model this workbench brings along, which knows little else."""
        return self.server.from_settings and DEMO_MODEL in self.model


def normalised_base_url(url: str) -> str:
    """The address as the OpenAI SDK wants it: no trailing slash, ending in /v1."""
    url = url.strip().rstrip("/")
    return url if url.endswith("/v1") else f"{url}/v1"


@transaction.atomic
def configure_servers() -> list[Server]:
    """Brings the servers that the settings name into the database, and makes them the defaults.

    A default that a person set to another server stays.
    """
    configured = []
    for name, url_setting, key_setting, uses in SETTINGS_SERVERS:
        url = getattr(settings, url_setting)
        if not url:
            continue
        server = Server.objects.filter(from_settings=True, name=name).first() or Server(
            from_settings=True, name=name
        )
        server.base_url = normalised_base_url(url)
        server.set_key(getattr(settings, key_setting))
        server.state, server.facts, server.seen = State.UNKNOWN, {}, None
        server.save()
        for use in uses:
            DefaultServer.objects.get_or_create(use=use, defaults={"server": server})
        configured.append(server)
    return configured


def make_default(server: Server, use: Use) -> None:
    DefaultServer.objects.update_or_create(use=use, defaults={"server": server, "model": ""})


def default_target(use: Use) -> Target:
    """The server and model a use gets when nothing else was chosen.

    Raises:
        NoServer: none is set.
    """
    default = DefaultServer.objects.select_related("server").filter(use=use).first()
    if default is None:
        raise NoServer(f"No model server is set for {use.label.lower()}. Add one under Servers.")
    return target(default.server, default.model)


def target(server: Server, model: str = "") -> Target:
    """`model` at `server`; without one, the first model the server names."""
    return Target(server, model or next(iter(server.model_ids), "default"))


async def look_at(server: Server, *, max_age: timedelta = FRESH_FOR) -> Server:
    """The server with facts no older than `max_age`, asked anew where they are."""
    fresh = server.seen is not None and timezone.now() - server.seen < max_age
    if fresh and server.state == State.READY:
        return server
    facts = await discovery.look(client_for(server.endpoint))
    return await in_db(_record, server, facts)


def _record(server: Server, facts: discovery.Facts) -> Server:
    server.state = facts.state
    server.seen = timezone.now()
    if facts.state == State.READY:
        server.kind = facts.kind
        server.facts = facts.as_dict()
    else:  # what was known of it stays: it will be the same server when it is back
        server.facts = {**server.facts, "error": facts.error}
    server.save(update_fields=["state", "seen", "kind", "facts"])
    return server


async def slots_of(server: Server) -> list[dict[str, Any]]:
    """What is known of each slot now, in the API's shape; empty where the server shows none."""
    states = await discovery.slot_states(client_for(server.endpoint)) or []
    return [
        {
            "id": state.get("id", index),
            "busy": bool(state.get("is_processing")),
            "used_by": None,
            "prompt_tokens": state.get("n_prompt_tokens"),
            "cached_tokens": state.get("n_prompt_tokens_cache"),
            "decoded": ((state.get("next_token") or [{}])[0] or {}).get("n_decoded"),
        }
        for index, state in enumerate(states)
    ]
