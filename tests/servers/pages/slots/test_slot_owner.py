"""Who sees whose request holds a slot."""

import pytest
from django.contrib.auth.models import User

from apps.llm.permits import PermitInfo
from apps.servers.pages.slots.slot_owner import held_permit
from apps.servers.pages.slots.slot_view import Occupant, SlotView, slot_views

OWNER, OTHER, ADMIN = User(pk=1), User(pk=2), User(pk=3, is_staff=True)


def entry(lane: str, label: str, owner: int | None) -> PermitInfo:
    return PermitInfo(lane=lane, label=label, model="m", owner=owner, tokens=9, seconds=1.0)


@pytest.mark.parametrize(
    ("lane", "occupant", "unnamed"),
    [
        ("interactive", Occupant.CHAT, "a program"),
        ("agent", Occupant.AGENT, "an agent"),
        ("batch", Occupant.JOB, "a job"),
        ("idle", Occupant.JOB, "a job"),
    ],
)
def test_programs_and_keys_are_named_to_their_owner_and_to_admins(
    lane: str, occupant: Occupant, unnamed: str
) -> None:
    held = entry(lane, "aider · key laptop", OWNER.pk)
    assert held_permit(held, OWNER).label == "aider · key laptop"
    assert held_permit(held, ADMIN).label == "aider · key laptop"
    seen = held_permit(held, OTHER)
    assert (seen.label, seen.occupant) == (unnamed, occupant)


@pytest.mark.parametrize(("lane", "label"), [("interactive", "Chat"), ("idle", "Title")])
def test_requests_of_the_workbench_have_common_names(lane: str, label: str) -> None:
    held = held_permit(entry(lane, label, None), OTHER)
    assert (held.label, held.occupant) == (label, Occupant.CHAT)


def test_a_request_that_is_taken_back_says_so() -> None:
    held = held_permit(entry("revoked", "Reviews", OWNER.pk), OWNER)
    [view] = slot_views([], [held], 1)
    assert view.sentence == "Slot 0: Reviews, giving its slot back"
    assert SlotView(0, Occupant.AGENT).owner == "Agent"
