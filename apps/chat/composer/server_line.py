"""The line below the composer: slots and context of the server that answers."""

from dataclasses import dataclass

from redis.exceptions import RedisError

from apps.llm.permits import busy_slots
from apps.servers import services as llm


@dataclass(frozen=True)
class ServerLine:
    """Figures of the model that answers; None where they are not reported."""

    slots: int | None = None
    free: int | None = None
    context: int | None = None
    """Tokens per slot."""

    @property
    def summary(self) -> str:
        """Return slots and context as a phrase."""
        context = f"{self.context:,} tokens" if self.context else ""
        if self.slots is None:
            return f"slots not reported, {context} of context" if context else "slots not reported"
        slots = f"{self.slots:,} slot{'' if self.slots == 1 else 's'}"
        return f"{slots} of {context}" if context else slots


def server_line(target: llm.Target | None) -> ServerLine:
    """Return the figures; without any if no server is set."""
    if target is None:
        return ServerLine()
    server, model = target.server, target.model
    if server.assumes_slots(model):
        return ServerLine(context=server.context_of(model))
    slots = server.slots_of(model)
    return ServerLine(slots, _free(server.pk, slots), server.context_of(model))


def _free(server: int, slots: int) -> int | None:
    try:
        return max(0, slots - busy_slots([server])[server])
    except RedisError:
        return None
