"""The slots of a server on its card: a row of boxes for each of its models that has its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from apps.llm.permits import Occupancy
from apps.servers.facts.slot_status import SlotStatus
from apps.servers.models import Kind, Server
from apps.servers.pages.slots.slot_owner import held_permit
from apps.servers.pages.slots.slot_view import Occupant, SlotView, slot_views

# Above this, boxes are small squares with a letter, and a list below them has the words.
MAX_WIDE_BOXES = 12


@dataclass(frozen=True)
class SlotRow:
    """The slots of one model, or those that all models of a server share."""

    model: str
    views: list[SlotView]
    is_reported: bool
    """False: only the requests of Workbench itself are known."""

    @property
    def is_dense(self) -> bool:
        return len(self.views) > MAX_WIDE_BOXES

    @property
    def busy(self) -> list[SlotView]:
        return [view for view in self.views if view.occupant is not Occupant.IDLE]

    @property
    def legend(self) -> list[tuple[SlotView, int]]:
        """One view of each kind with its count, for boxes too small for words."""
        kinds: dict[tuple[Occupant, str], list[SlotView]] = {}
        for view in self.views:
            kinds.setdefault((view.occupant, view.owner), []).append(view)
        return [(alike[0], len(alike)) for alike in kinds.values()]


def slot_rows(
    server: Server,
    occupancies: Mapping[str, Occupancy],
    slots: Mapping[str, Sequence[SlotStatus]],
    viewer: User,
) -> list[SlotRow]:
    """Return a row for each scope, with the requests of ours that hold its slots.

    Args:
        slots: the server's report about its slots, by scope.
        viewer: the user; names of jobs are for their owners and staff.
    """
    return [
        _slot_row(server, scope, slots.get(scope, ()), occupancy, viewer)
        for scope, occupancy in occupancies.items()
    ]


def _slot_row(
    server: Server,
    scope: str,
    slots: Sequence[SlotStatus],
    occupancy: Occupancy,
    viewer: User,
) -> SlotRow:
    held = [
        held_permit(entry, viewer)
        for entry in occupancy.held
        if server.slot_scope(entry.model) == scope
    ]
    shows_slots = server.facts.shows_slots
    if shows_slots is None:
        shows_slots = server.kind == Kind.LLAMA_SERVER
    views = slot_views(slots, held, server.slots_of(scope))
    return SlotRow(scope, views, bool(slots) or shows_slots)
