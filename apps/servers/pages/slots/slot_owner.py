"""Whose request a slot holds, as far as the viewer may know. Pure but for the user."""

from django.contrib.auth.models import User

from apps.llm.permits import Lane, PermitInfo
from apps.servers.pages.slots.slot_view import HeldPermit, Occupant

UNNAMED = {Occupant.CHAT: "a program", Occupant.AGENT: "an agent", Occupant.JOB: "a job"}
"""What others see of a request with a name."""


def held_permit(entry: PermitInfo, viewer: User) -> HeldPermit:
    """Return a permit as this user sees it.

    Names of jobs, programs and keys are for their owner and for admins. Requests of the workbench
    itself have no owner and a common name, such as “Chat”.
    """
    occupant = _occupant(entry)
    is_common = entry.owner is None and occupant is not Occupant.JOB
    may_know = is_common or viewer.is_staff or entry.owner == viewer.pk
    return HeldPermit(
        occupant,
        label=(entry.label if may_know else "") or ("" if is_common else UNNAMED[occupant]),
        tokens=entry.tokens,
        started=-entry.seconds,
        model=entry.model,
        is_revoked=entry.lane == "revoked",
    )


def _occupant(entry: PermitInfo) -> Occupant:
    match entry.lane:
        case Lane.BATCH | "revoked":
            return Occupant.JOB
        case Lane.AGENT:
            return Occupant.AGENT
        case Lane.IDLE if entry.owner is not None:
            return Occupant.JOB
    return Occupant.CHAT
