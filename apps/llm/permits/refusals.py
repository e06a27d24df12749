"""Reduces the slots of a server that has refused a request."""

from contextlib import suppress

from redis.exceptions import RedisError

from apps.llm import errors
from apps.llm.permits.keys import permit_key
from apps.llm.permits.permit_holder import permit_holder
from apps.llm.permits.terms import SlotTerms

# A server that refuses and does not say for how long is paused for the first of these, and for
# twice as long after each refusal that follows.
FIRST_PAUSE_SECONDS = 1.0
LAST_PAUSE_SECONDS = 60.0


async def back_off(terms: SlotTerms, error: errors.Busy | errors.PoolExhausted) -> None:
    """Reduce a server's slots after it has refused a request; they come back one by one.

    A busy server is sent nothing for as long as it says, else for a pause that doubles with each
    refusal that follows. To be called while the refused request still has its permit.
    """
    is_overflow = isinstance(error, errors.PoolExhausted)
    wait = 0.0 if isinstance(error, errors.PoolExhausted) else error.retry_after or 0.0
    pauses = (0.0, 0.0) if is_overflow else (FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS)
    parts = ("", "people", f"limit:{terms.scope}")
    with suppress(RedisError, OSError):
        await permit_holder().back_off(
            keys=[permit_key(terms.server_id, part) for part in parts],
            args=[
                *(terms.scope, 0.5 if is_overflow else 1, int(wait * 1000), str(error)),
                *(int(seconds * 1000) for seconds in pauses),
            ],
        )
