"""What answers at an address that is being entered, before it is added. Nothing is stored."""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from apps.llm.client import Client
from apps.llm.endpoint import Endpoint
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.models import DefaultServer, Server, State, Use
from apps.servers.pages.fact_rows import model_abilities
from apps.servers.probing.discovery import probe
from apps.servers.targets import DEMO_MODEL, is_embedding_model

SECONDS = 8.0
SLOW = f"Nothing answered within {SECONDS:.0f} seconds."
SHOWN_MODELS = 3


@dataclass(frozen=True)
class OfferedUse:
    use: Use
    label: str
    is_offered: bool
    is_chosen: bool


@dataclass(frozen=True)
class ProbeResult:
    """The outcome of a test."""

    state: State
    tone: str
    title: str
    detail: str = ""
    rows: list[tuple[str, str]] = field(default_factory=list)
    uses: list[OfferedUse] = field(default_factory=list)
    name: str = ""
    """A name that would suit it; empty where nothing is known of it."""

    @property
    def is_key_rejected(self) -> bool:
        return self.state == State.UNAUTHORIZED

    @property
    def is_offline(self) -> bool:
        return self.state == State.UNREACHABLE


async def probe_address(base_url: str, key: str) -> ProbeResult:
    """Ask the server at a normalised address what it is. No model is loaded by it."""
    client = Client(Endpoint(base_url, key))
    try:
        async with asyncio.timeout(SECONDS):
            facts = await probe(client)
    except TimeoutError:
        facts = ServerFacts(State.UNREACHABLE, error=SLOW)
    finally:
        await client.aclose()
    server = Server(base_url=base_url, kind=facts.kind, state=facts.state)
    server.stored_facts = facts.to_json()
    taken = {
        default.use: default async for default in DefaultServer.objects.select_related("server")
    }
    return describe(server, facts, taken, is_keyless=not key)


def describe(
    server: Server,
    facts: ServerFacts,
    taken: dict[str, DefaultServer],
    *,
    is_keyless: bool,
) -> ProbeResult:
    """Return what the dialog shows.

    Args:
        server: not stored.
        taken: the default of each use that has one.
    """
    match facts.state:
        case State.UNAUTHORIZED:
            title = "This server needs a key" if is_keyless else "The server rejected the key"
            return ProbeResult(State.UNAUTHORIZED, "bad", title)
        case State.READY:
            return _ready(server, facts, taken)
        case State.LOADING:
            return ProbeResult(State.LOADING, "warn", "Reachable, loading its model", facts.error)
        case _:
            return ProbeResult(State.UNREACHABLE, "bad", "No answer", facts.error)


def _ready(server: Server, facts: ServerFacts, taken: dict[str, DefaultServer]) -> ProbeResult:
    kind, models = server.get_kind_display(), facts.models
    if not models:
        return ProbeResult(
            State.READY, "warn", f"Reachable: {kind}", "It lists no models.", name=_name(server)
        )
    count = "1 model" if len(models) == 1 else f"{len(models)} models"
    shown = [model.id for model in models[:SHOWN_MODELS]]
    more = len(models) - len(shown)
    rows = [
        (
            "Model" if len(models) == 1 else "Models",
            ", ".join(shown) + (f" and {more} more" * bool(more)),
        )
    ]
    if facts.shows_slots and not server.swaps:
        each = f", with {server.context:,} tokens each" if server.context else ""
        rows.append(("Slots", f"{server.slots}{each}"))
    if abilities := sorted({name for model in models for name in model_abilities(model)}):
        rows.append(("Can do", ", ".join(abilities)))
    return ProbeResult(
        State.READY,
        "good",
        f"Ready: {kind}, {count}",
        rows=rows,
        uses=[_offered(server, use, taken.get(use)) for use in Use],
        name=_name(server),
    )


LABELS = {Use.CHAT: "Chat", Use.GENERATION: "Generate", Use.EMBEDDINGS: "Embeddings"}


def _offered(server: Server, use: Use, default: DefaultServer | None) -> OfferedUse:
    """A use that no server has, or the demo model's alone, is chosen to begin with."""
    models = server.model_facts
    if use == Use.EMBEDDINGS:
        is_offered = any(model.embeddings is not False for model in models)
        suits = default is None and any(is_embedding_model(model) for model in models)
    else:
        is_offered = any(not is_embedding_model(model) for model in models)
        suits = default is None or _is_demo(default.server)
    return OfferedUse(use, LABELS[use], is_offered, is_offered and suits)


def _is_demo(server: Server) -> bool:
    return server.from_settings and any(DEMO_MODEL in name for name in server.model_ids)


def _name(server: Server) -> str:
    host = urlsplit(server.base_url).hostname or ""
    what = server.model_ids[0] if len(server.model_ids) == 1 else server.get_kind_display()
    what = what.rpartition("/")[2].removesuffix(".gguf")
    return f"{what} on {host}"[:100]
