"""Why rows wait for a slot, as `acquire.lua` reports it.

A refusal is one of "slots", "people" and "tokens", where it is answered followed by ":<requests
before>", "restarted", "model:<models in the way>", or "limit:<milliseconds>:<reason>" where the
server itself has refused a request.
"""

from contextlib import suppress

from redis.exceptions import RedisError

from apps.llm.permits.keys import permit_key
from apps.runtime.redis import sync_redis


def parse_backoff(refusal: str) -> tuple[float, str]:
    """Seconds for which a server is paused, and its own reason."""
    _, ms, reason = refusal.split(":", 2)
    return int(ms) / 1000, reason


def requests_before(refusal: str) -> int | None:
    """Return how many requests come before one that waits; None where the refusal does not say."""
    kind, _, count = refusal.partition(":")
    return int(count) if kind in {"slots", "people", "tokens"} and count else None


def describe_backoff(refusal: str) -> str:
    """A sentence about a server that refused a request; "" for all other refusals."""
    if not refusal.startswith("limit:"):
        return ""
    seconds, reason = parse_backoff(refusal)
    return f"Waiting {max(1, round(seconds))} s. {reason}"


def batch_wait_reason(server_id: int) -> str:
    """The refusal a row got in the last seconds; "" where there was none. Blocks."""
    with suppress(RedisError):
        found = sync_redis().get(permit_key(server_id, "wait-reason"))
        return found.decode() if isinstance(found, bytes) else ""
    return ""


def describe_batch_wait(server_id: int) -> str:
    """A sentence about why rows wait for a model of this server; "" where they do not. Blocks."""
    refusal = batch_wait_reason(server_id)
    if refusal.startswith("model:"):
        models = refusal.removeprefix("model:")
        return f"Waiting: {models} is in use, and the server would have to unload it."
    return describe_backoff(refusal)
