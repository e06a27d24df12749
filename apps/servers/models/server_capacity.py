"""A server's slots and context, as properties of its model; computed by `facts.capacity`."""

from apps.servers.facts import capacity
from apps.servers.facts.capacity import CapacitySource


class ServerCapacity:
    """Requests and tokens that a server takes at once, per model where they differ."""

    @property
    def slots(self: CapacitySource) -> int:
        """Requests it works on at once: as reported, else as stated by a person, else one."""
        return capacity.slots(self).value

    def slots_of(self: CapacitySource, model: str = "") -> int:
        """Requests for a model to have in flight: its slots, never more than the limit."""
        return capacity.slots(self, model).value

    def slots_source(self: CapacitySource, model: str = "") -> str:
        return capacity.slots(self, model).source

    def assumes_slots(self: CapacitySource, model: str = "") -> bool:
        """True if neither the server nor a person has stated the number of slots."""
        return capacity.slots(self, model).source == capacity.ASSUMED

    def measures_slots(self: CapacitySource, model: str = "") -> bool:
        """True if only the speed of its answers shows the number of slots."""
        return capacity.is_measurable(self, model)

    def best_width_of(self: CapacitySource, model: str) -> int | None:
        """Rows in parallel that were fastest, as somebody measured; None if nobody did."""
        best = capacity.best_width(self, model)
        return best.value if best else None

    def mixed_width_of(self: CapacitySource, model: str) -> int | None:
        """Rows in parallel while people use the server, as somebody measured; else None."""
        best = capacity.best_width(self, model)
        return best.mixed if best else None

    @property
    def concurrency_limit(self: CapacitySource) -> tuple[int, str] | None:
        """The most requests at a time for one model, slots or not, and why."""
        return capacity.concurrency_limit(self)

    @property
    def context(self: CapacitySource) -> int | None:
        """Tokens per slot."""
        return capacity.context(self).value

    def context_of(self: CapacitySource, model: str = "") -> int | None:
        """Tokens per slot of a model."""
        return capacity.context(self, model).value

    def context_source(self: CapacitySource, model: str = "") -> str:
        return capacity.context(self, model).source

    def unified(self: CapacitySource, model: str = "") -> bool | None:
        """True if the slots share one KV cache; None if not known."""
        return capacity.unified(self, model).value

    def unified_source(self: CapacitySource, model: str = "") -> str:
        return capacity.unified(self, model).source

    def pool(self: CapacitySource, model: str = "") -> int | None:
        """Tokens that all requests in flight share; None when each slot has its own cache."""
        return capacity.pool(self, model)

    @property
    def advice(self: CapacitySource) -> list[str]:
        """Sentences for whoever runs the server."""
        return capacity.advice(self)
