"""Adding, finding and looking at model servers."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.core.errors import DomainError
from apps.llm.addresses import normalised_base_url
from apps.llm.client import Client, client_for
from apps.servers import discovery, refresh
from apps.servers.kinds import llama_swap, router
from apps.servers.loading.load_model import (
    LOAD_SECONDS,
    Action,
    Activity,
    activities,
    load_model,
    unload_model,
    warm_model,
)
from apps.servers.loading.load_model import check as check_action
from apps.servers.loading.load_model import start as start_action
from apps.servers.loading.progress import shares as load_shares
from apps.servers.models import DefaultServer, Kind, Server, State, Use
from apps.servers.pages.choices import embeds
from apps.servers.refresh import (
    FRESH_FOR,
    Health,
    ahealth,
    health,
    look_at,
    look_soon,
    note_alive,
    note_error,
    note_stuck,
)
from apps.servers.slots import hold_slot, slot_terms

# What other rooms use of this one.
__all__ = [
    "FRESH_FOR",
    "LOAD_SECONDS",
    "Action",
    "Activity",
    "Health",
    "NoServer",
    "Target",
    "Use",
    "activities",
    "ahealth",
    "check_action",
    "configure_servers",
    "default_target",
    "health",
    "hold_slot",
    "load_model",
    "load_shares",
    "look_at",
    "look_soon",
    "make_default",
    "note_alive",
    "note_error",
    "note_stuck",
    "slot_terms",
    "slots_of",
    "start_action",
    "target",
    "unload_model",
    "warm_model",
]

DEMO_MODEL = "workbench-demo"

CHAT_SERVER = "Chat server"
SETTINGS_SERVERS = (
    # name, settings of its address and key, what it is the default for
    (CHAT_SERVER, "LLM_BASE_URL", "LLM_API_KEY", (Use.CHAT, Use.GENERATION)),
    ("Embedding server", "EMBED_BASE_URL", "EMBED_API_KEY", (Use.EMBEDDINGS,)),
)


class NoServer(DomainError):
    """No server was chosen for this use. The message says where to do it."""

    status = 503
    code = "no_server"


@dataclass(frozen=True)
class Target:
    """A server and the model to ask it for."""

    server: Server
    model: str

    @property
    def client(self) -> Client:
        return client_for(self.server.endpoint)

    @property
    def is_in_memory(self) -> bool:
        """Whether it answers without being loaded first, as far as is known."""
        return (
            not self.server.swaps or self.server.model_id(self.model) in self.server.loaded_models
        )

    @property
    def is_demo(self) -> bool:
        """Whether it is the small model this workbench brings along, which knows little else."""
        return self.server.from_settings and DEMO_MODEL in self.model


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
        if server.base_url != normalised_base_url(url):
            server.base_url, server.kv_unified = normalised_base_url(url), None
        server.set_key(getattr(settings, key_setting))
        if name == CHAT_SERVER and settings.LLM_KV_UNIFIED is not None:
            server.kv_unified = settings.LLM_KV_UNIFIED
        server.forget_facts()
        server.save()
        for use in uses:
            DefaultServer.objects.get_or_create(use=use, defaults={"server": server})
        configured.append(server)
    return configured


def make_default(server: Server, use: Use, model: str = "") -> None:
    """Gives a use this server, and this model of it; without one, the first that suits the use."""
    DefaultServer.objects.update_or_create(use=use, defaults={"server": server, "model": model})


def default_target(use: Use) -> Target:
    """The server and model a use gets when nothing else was chosen.

    Raises:
        NoServer: none is set.
    """
    default = DefaultServer.objects.select_related("server").filter(use=use).first()
    if default is not None:
        return target(default.server, default.model, use)
    raise NoServer(f"No server set for {use.label.lower()}. Choose one under Servers.")


def target(server: Server, model: str = "", use: Use | None = None) -> Target:
    """`model` at `server`; without one, the first in its list that suits the use.

    Args:
        use: None: anything but embeddings.
    """
    return Target(server, model or _first_model(server, use) or "default")


def _first_model(server: Server, use: Use | None) -> str:
    """The order is the server's, not what is loaded right now: a choice that changes from one
    request to the next would cost the prompt cache and mix models in one job."""
    for model in server.model_facts:
        if embeds(model) == (use == Use.EMBEDDINGS):
            return str(model["id"])
    return next(iter(server.model_ids), "")


async def slots_of(server: Server, model: str = "") -> list[dict[str, Any]]:
    """What llama-server says of each slot now; empty where it shows none.

    Never asks what would wake a sleeping server, load a model or keep one in memory: a server
    that sleeps shows nothing, and of a router or llama-swap only a model that is loaded and not
    to be unloaded after some quiet.

    Returns: for each slot `id busy model`, and where told `task context held cached_tokens decoded
        remain prompt_tokens`. `held` is what the slot's cache holds so far, in tokens;
        `prompt_tokens` the part of it that is the prompt.
    """
    if server.state != State.READY or not server.facts.get("shows_slots"):
        return []
    client = client_for(server.endpoint)
    found = []
    for name, path in await _slot_routes(server, client, model):
        states = await discovery.slot_states(client, path) or []
        found += [_slot(state, index, name) for index, state in enumerate(states)]
    if found and not server.swaps:
        held = sum(slot["held"] or 0 for slot in found)
        await refresh.note_tokens_held(server, held)
    return found


async def _slot_routes(server: Server, client: Client, model: str) -> list[tuple[str, str]]:
    """Model and address of each process whose slots may be asked for."""
    if not server.swaps:
        if server.facts.get("sleeping") or await discovery.is_asleep(client):
            return []
        return [(next(iter(server.model_ids), ""), "/slots")]
    wanted = server.model_id(model)
    loaded = [
        m
        for m in server.model_facts
        if m.get("state") == "loaded" and wanted in {"", m["id"]} and not m.get("ttl")
    ]
    if server.kind == Kind.ROUTER:
        return [(m["id"], router.slots_path(m["id"])) for m in loaded]
    return [(m["id"], llama_swap.upstream(m["id"], "/slots")) for m in loaded]


def _slot(state: dict[str, Any], index: int, model: str) -> dict[str, Any]:
    progress = (state.get("next_token") or [{}])[0] or {}
    held, decoded = state.get("n_prompt_tokens"), progress.get("n_decoded")
    return {
        "id": state.get("id", index),
        "busy": bool(state.get("is_processing")),
        "used_by": None,
        "model": model,
        "task": state.get("id_task"),
        "context": state.get("n_ctx"),
        "held": held,
        "processed": state.get("n_prompt_tokens_processed"),
        "prompt_tokens": held - decoded if held and decoded else held,
        "cached_tokens": state.get("n_prompt_tokens_cache"),
        "decoded": decoded,
        "remain": progress.get("n_remain"),
    }
