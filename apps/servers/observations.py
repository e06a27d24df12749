"""Records on a server what requests have shown about it."""

from django.utils import timezone

from apps.llm import errors
from apps.runtime.async_db import in_db
from apps.servers import liveness
from apps.servers.facts.server_facts import BestWidth, MeasuredWidth, Observation, ServerFacts
from apps.servers.models import Server, State
from apps.servers.probing.refresh import mark_stale


async def record_answer(server: Server) -> None:
    """Record that the first token of an answer has arrived. Call it once for each answer."""
    await liveness.record_token(server.pk)
    if server.state != State.READY:
        await mark_stale(server)


async def record_error(server: Server, error: errors.LLMError, model: str = "") -> None:
    """Record what a failed request for `model` shows about the server itself."""
    match error:
        case errors.Stalled():
            await liveness.record_stall(server.pk)
        case errors.PoolExhausted():
            await record_unified(
                server, True, "observed: requests exceeded the shared context", model
            )
        case errors.Unreachable() | errors.Loading() | errors.Unauthorized():
            await mark_stale(server)


async def record_held_tokens(server: Server, tokens: int, model: str = "") -> None:
    """Record the tokens in all slots together: more than one slot's context, so no shared cache."""
    context = server.context_of(model)
    if context is not None and tokens > context and server.unified(model) is not False:
        await record_unified(
            server, False, "observed: slots hold more than one shared cache", model
        )


async def record_unified(server: Server, value: bool, source: str, model: str = "") -> None:
    """Record if the slots share one KV cache. Kept while the number of slots stays the same.

    Writes only news, so a caller may report it as often as it is seen.
    """
    scope = server.slot_scope(model)
    known = server.facts.observed_unified.get(scope)
    if known is not None and known.value == value:
        return

    def add(facts: ServerFacts) -> None:
        facts.observed_unified[scope] = Observation(value, source)

    add(server.facts)
    server.stored_facts = server.facts.to_json()
    await in_db(Server.objects.change_facts, server.pk, add)


async def record_width(server: Server, model: str, width: MeasuredWidth) -> None:
    """Record how many requests for a model the server answers at once, as measured."""
    name = server.model_id(model)

    def add(facts: ServerFacts) -> None:
        facts.measured_widths[name] = width

    add(server.facts)
    server.stored_facts = server.facts.to_json()
    await in_db(Server.objects.change_facts, server.pk, add)


def record_best_width(server: Server, model: str, width: int, mixed: int | None = None) -> None:
    """Make `width` the rows that jobs of a model have in parallel on this server.

    Args:
        mixed: the same while people use the server; None: what they leave.
    """
    at = timezone.now().isoformat(timespec="seconds")
    best = BestWidth(width, server.slots_of(model), at, mixed)
    name = server.model_id(model)

    def add(facts: ServerFacts) -> None:
        facts.best_widths[name] = best

    Server.objects.change_facts(server.pk, add)


def forget_best_width(server: Server, model: str) -> None:
    """Have jobs use all slots again, or find the number themselves."""
    name = server.model_id(model)

    def remove(facts: ServerFacts) -> None:
        facts.best_widths.pop(name, None)

    Server.objects.change_facts(server.pk, remove)
