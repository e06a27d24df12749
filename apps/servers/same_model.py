"""Which servers serve the same model: by its name or a group, checked by weights or an answer.

A name proves little: every server lists what its owner called the file. So two servers work on one
job only if they report the same weights or, where one reports none, answer a fixed prompt alike.
"""

from collections.abc import Iterable

from apps.llm.client import ChatRequest
from apps.llm.permits import Lane
from apps.llm.thinking import plan_thinking
from apps.runtime.async_db import in_db
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.models import Kind, Server
from apps.servers.slots.hold_slot import hold_slot
from apps.servers.targets import Target, can_generate, choose_target

PROMPT = "Name the days of the week, in order."
ANSWER_TOKENS = 24
# A proxy may stand in front of these very servers, and a service may cost money: they take part by
# a group alone.
OWN_KINDS = {Kind.LLAMA_SERVER, Kind.ROUTER, Kind.LLAMA_SWAP}
MAX_TOKENS = 200
"""Prompt and answer, where requests in flight share one context."""


def same_model_targets(target: Target, servers: Iterable[Server] | None = None) -> list[Target]:
    """The other servers that seem to serve a target's model, each with the model's name there.

    Args:
        servers: those to choose from, with their `defaults` prefetched; None: all.
    """
    if not target.server.model_facts:
        return []  # nothing is known of it yet
    if servers is None:
        servers = Server.objects.prefetch_related("defaults")
    found: list[Target] = []
    # One program under two names has its slots only once.
    addresses = {target.server.address}
    for server in servers:
        other = None if server.address in addresses else _named_alike(target, server)
        if other is not None and not _weights_differ(target, other):
            addresses.add(server.address)
            found.append(other)
    return found


def share_models(servers: Iterable[Server]) -> bool:
    """True if any two of these servers seem to serve the same model."""
    seen: set[tuple[str, str]] = set()
    for server in servers:
        keys = {("group", server.model_group)} if server.model_group else set()
        if server.kind in OWN_KINDS:
            names = (name for model in server.model_facts for name in (model.id, *model.aliases))
            keys |= {("name", name) for name in names}
        if keys & seen:
            return True
        seen |= keys
    return False


def model_difference(known: Target, other: Target, answer: str = "") -> str | None:
    """Return why `other` is not the same model, as a sentence; "" if it is, None if unknown.

    Args:
        answer: what `other` answered to the fixed prompt, see `ask_canary`. Needed where weights
            are not reported; the answer of `known` may be an earlier one.
    """
    if _weights_differ(known, other):
        return f"“{other.server}” has other weights under the name {other.model}."
    if _weights(known) and _weights(other):
        return ""
    expected = known.server.facts.canaries.get(known.model)
    if not expected or not answer:
        return None
    if expected == answer:
        return ""
    return f"“{other.server}” answered a test prompt differently: it serves another model."


def _named_alike(target: Target, server: Server) -> Target | None:
    facts = target.server.facts_of(target.model)
    if {target.server.kind, server.kind} <= OWN_KINDS:
        for name in (target.model, facts.id, *facts.aliases):
            if (found := server.model(name)) is not None:
                return Target(server, found.id)
    group = target.server.model_group
    if not group or group != server.model_group:
        return None
    models = [model.id for model in server.model_facts if can_generate(server, model)]
    return Target(server, models[0]) if models else choose_target(server)


def _weights(target: Target) -> list[int]:
    return target.server.facts_of(target.model).weights


def _weights_differ(one: Target, other: Target) -> bool:
    return bool(_weights(one) and _weights(other)) and _weights(one) != _weights(other)


async def ask_canary(target: Target) -> str:
    """Ask for the answer to the fixed prompt, and keep it with the facts.

    Raises:
        LLMError: the server failed.
        ModelInUse: it would have to unload a model that is in use.
        SlotTaken: someone needed the slot.
    """
    server, model = target.server, target.model
    plan = plan_thinking(server.facts_of(model).thinking)
    request = ChatRequest(
        model,
        [{"role": "user", "content": PROMPT}],
        ANSWER_TOKENS + plan.extra_tokens,
        {"temperature": 0.0, **plan.params},
    )
    async with hold_slot(
        server, lane=Lane.BATCH, model=model, tokens=MAX_TOKENS, label="Model check"
    ) as held:
        completion = await target.client.complete(request)
        held.record_usage(completion.usage)

    def add(facts: ServerFacts) -> None:
        facts.canaries[model] = completion.text

    await in_db(Server.objects.change_facts, server.pk, add)
    return completion.text
