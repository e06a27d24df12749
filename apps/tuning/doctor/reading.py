"""What one server reports of a model, read without using a slot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from apps.llm.errors import LLMError
from apps.llm.thinking import NOT_REPORTED, ThinkingSupport
from apps.runtime.async_db import in_db
from apps.servers.models import Kind, Server, State, Use
from apps.servers.services import Health, Target, aread_health
from apps.tuning.doctor.local_model import read_local_model
from apps.tuning.hooks import (
    NO_SWAPS,
    NO_TRAFFIC,
    Swaps,
    Traffic,
    read_traffic,
    traffic_of,
)
from apps.tuning.machine_hooks import Gpu, read_gpus
from apps.tuning.planner.gpu_names import find_gpu
from apps.tuning.planner.hardware import Hardware
from apps.tuning.running_command import read_command

if TYPE_CHECKING:
    from apps.tuning.planner.model.model_shape import ModelShape

# A web page of a stranger, as a browser names it. Reserved: nobody can own this name.
FOREIGN_ORIGIN = "https://doctor.example"
DRAFT_MODEL = frozenset({"-md", "--model-draft", "--spec-draft-model"})
TEMPLATE_CHARACTERS = 200_000
# A proxy may hide several servers, and a service may cost money.
LLAMA_CPP = frozenset({Kind.LLAMA_SERVER, Kind.ROUTER, Kind.LLAMA_SWAP})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One model of one server. None: not reported, or not asked of this kind of server."""

    model: str
    kind: str = ""
    """Of the server; see `Kind`."""
    is_llama_cpp: bool = False
    has_own_routes: bool = False
    """True if a single llama-server answers there, whose own routes are this model's."""
    embeds: bool | None = None
    slots: int | None = None
    context: int | None = None
    """Tokens per slot."""
    context_trained: int | None = None
    shows_slots: bool | None = None
    shows_metrics: bool | None = None
    is_keyless: bool | None = None
    allowed_origin: str | None = None
    """The web pages that it lets browsers ask it from; "" none."""
    template: str = ""
    takes_tools: bool | None = None
    thinking: ThinkingSupport = NOT_REPORTED
    uses: frozenset[str] = frozenset()
    """The uses that this server is the default for."""
    keeps_reasoning: bool | None = None
    """True if the template can write earlier thoughts into a prompt."""
    drafts_with: str = ""
    """How it drafts (speculative decoding); "": not at all, or not reported."""
    weight_bytes: int | None = None
    command: str = ""
    """The command line that it was started with, without keys."""
    shape: "ModelShape | None" = None
    """What its file says; None: not on this machine."""
    parameters: int | None = None
    gpus: tuple[Hardware, ...] = ()
    """Those of its machine, as the planner knows them; (): not reported, or one is unknown."""
    traffic: Traffic = NO_TRAFFIC
    silent_seconds: float | None = None
    """For so long it has taken requests and returned no token; None: it returned some."""
    swaps: Swaps = NO_SWAPS
    """Of the whole server, with the first of its models alone."""

    @property
    def longest_text(self) -> int | None:
        """Tokens of the longest text that model and slot have room for."""
        known = [tokens for tokens in (self.context, self.context_trained) if tokens]
        return min(known) if self.context_trained and known else None


async def read_server(target: Target) -> Reading:
    """Read all that is reported; a route that fails is not reported.

    Args:
        target: with fresh facts. A router's or llama-swap's model is in memory.
    """
    server, is_single = target.server, target.server.kind == Kind.LLAMA_SERVER
    props = await _get_props(target) if is_single else {}
    recorded = traffic_of(await in_db(read_traffic, [server.pk]), server.pk, target.model)
    health = (await aread_health([server]))[server.pk]
    command = await read_command(target)
    return replace(
        known_reading(server, target.model, recorded, health),
        allowed_origin=await _read_allowed_origin(target) if is_single else None,
        template=str(props.get("chat_template") or "")[:TEMPLATE_CHARACTERS],
        uses=await in_db(_uses_of, server),
        drafts_with=drafts_in(command),
        command=command,
        gpus=_known(await read_gpus(server)),
        shape=await read_local_model(server.base_url, str(props.get("model_path") or ""), command),
    )


def known_reading(server: Server, model_id: str, traffic: Traffic, health: Health) -> Reading:
    """Return what the latest facts of a server say, and what was recorded of it."""
    model, facts = server.facts_of(model_id), server.facts
    is_first = not server.swaps or model_id in {"", *server.loaded_models[:1]}
    is_single = server.kind == Kind.LLAMA_SERVER
    return Reading(
        model=model_id,
        kind=server.kind,
        is_llama_cpp=server.kind in LLAMA_CPP,
        has_own_routes=is_single,
        embeds=model.embeddings,
        slots=model.slots if server.swaps else facts.slots,
        context=model.context if server.swaps else facts.context,
        context_trained=model.context_trained,
        shows_slots=facts.shows_slots if is_single else None,
        shows_metrics=facts.shows_metrics if is_single else None,
        is_keyless=facts.keyless if is_single else None,
        takes_tools=model.abilities.get("tools"),
        thinking=model.thinking,
        keeps_reasoning=model.abilities.get("preserve_reasoning"),
        # Parameters, bytes and width, if all are reported.
        parameters=model.weights[0] if len(model.weights) == 3 else None,
        weight_bytes=model.weights[1] if len(model.weights) == 3 else None,
        traffic=traffic,
        silent_seconds=_silent_seconds(health) if is_first else None,
        swaps=traffic.swaps if is_first else NO_SWAPS,
    )


def _silent_seconds(health: Health) -> float | None:
    if health.state != State.STUCK or health.since is None:
        return None
    return (timezone.now() - health.since).total_seconds()


def _known(gpus: Sequence[Gpu]) -> tuple[Hardware, ...]:
    found = tuple(known for gpu in gpus if (known := find_gpu(gpu.name, gpu.memory)) is not None)
    return found if len(found) == len(gpus) else ()


def drafts_in(command: str) -> str:
    """Return the kinds of drafts that a command asks for, "" if none or not reported."""
    words = command.replace("=", " ").split()
    named = [value for flag, value in pairwise(words) if flag == "--spec-type"]
    if named:
        return named_kinds(named[-1])
    return "" if DRAFT_MODEL.isdisjoint(words) else "a draft model"


def named_kinds(kinds: str) -> str:
    """The kinds of drafts in a list of llama-server, which may have "none" among them."""
    return ",".join(kind for kind in kinds.split(",") if kind not in {"", "none"})


async def _get_props(target: Target) -> dict[str, Any]:
    try:
        props = await target.client.get("/props")
    except LLMError:
        return {}
    return props if isinstance(props, dict) else {}


async def _read_allowed_origin(target: Target) -> str | None:
    try:
        headers = await target.client.get_headers("/v1/models", {"Origin": FOREIGN_ORIGIN})
    except LLMError:
        return None
    return headers.get("Access-Control-Allow-Origin", "")


def _uses_of(server: Server) -> frozenset[str]:
    return frozenset(str(Use(default.use)) for default in server.defaults.all())
