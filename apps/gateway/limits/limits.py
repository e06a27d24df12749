"""The limits of a key: its own, and those of all keys of its person. Asks nobody."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.core.exceptions import ObjectDoesNotExist

from apps.core import quotas
from apps.core.models import ApiKey, Limits


@dataclass(frozen=True, slots=True)
class ScopedLimits:
    """The limits of one key or of one person. None: no limit."""

    scope: str
    """Names the counters in Redis."""
    subject: str
    """Begins a sentence."""
    requests_per_minute: int | None
    tokens_per_day: int | None
    in_flight: int | None


def limits_of(key: ApiKey) -> list[ScopedLimits]:
    """Return the limits of the key, then those of its person."""
    own = person_limits(key)
    most = quotas.most("programs")
    return [
        ScopedLimits(
            f"key:{key.pk}",
            f"The key “{key.name}”",
            key.requests_per_minute,
            key.tokens_per_day,
            key.in_flight,
        ),
        ScopedLimits(
            f"person:{key.user_id}",
            "All your keys together",
            own.requests_per_minute if own else None,
            own.tokens_per_day if own else None,
            min(most, own.in_flight) if own and own.in_flight else most,
        ),
    ]


def person_limits(key: ApiKey) -> Limits | None:
    """Return the limits of a key's person; None: there are none. They came with the key."""
    try:
        limits: Limits = key.user.program_limits
    except ObjectDoesNotExist:
        return None
    return limits


def each(key: ApiKey) -> Iterator[tuple[str, Limits]]:
    """Yield the limits of the key and of its person, with the beginning of a sentence."""
    yield f"The key “{key.name}”", key
    if (own := person_limits(key)) is not None:
        yield "All your keys together", own
