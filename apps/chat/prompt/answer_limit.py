"""The `max_tokens` of a request. Pure but for the server's facts."""

from apps.servers.models import Server

# Tokens that an answer is assumed to need if nothing limits it: for admission, never sent.
ANSWER_TOKENS = 2048
# Share of a slot for the answer if slots share one cache: the rest is for the prompt.
SHARE_OF_SLOT = 0.75


def answer_limit(server: Server, model: str, wanted: int | None) -> int | None:
    """Return the `max_tokens` for a server; None: send none.

    llama.cpp ends an answer where its slot does. Others count `max_tokens` into what has to fit
    and refuse the request, so they are sent none that nobody asked for.
    """
    return limit_for(
        wanted,
        context=server.context_of(model) if server.continues_messages else None,
        pool=server.pool(model),
        slots=server.slots_of(model),
    )


def limit_for(
    wanted: int | None, *, context: int | None, pool: int | None = None, slots: int = 1
) -> int | None:
    """Return `max_tokens` of a request; None if it is left to the server.

    It never depends on an estimate of the prompt: a server that knows the prompt ends an answer at
    the end of its slot, and a wrong guess would cut answers short.

    Args:
        wanted: what a person set.
        context: tokens per slot, if the server is known to end answers there.
        pool: tokens that all slots share; exceeding them ends every request in flight.
    """
    if wanted is not None:
        return wanted
    if pool and slots > 1:
        return max(ANSWER_TOKENS, int(SHARE_OF_SLOT * pool / slots))
    return context
