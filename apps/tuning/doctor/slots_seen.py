"""What the slots of a llama-server do, by two looks at `/slots`. Pure."""

from enum import StrEnum
from typing import Any


class SlotsSeen(StrEnum):
    UNKNOWN = "unknown"
    """The server does not show them."""
    SILENT = "silent"
    """The route did not answer."""
    IDLE = "idle"
    """At least one has nothing to do."""
    STILL = "still"
    """All have a request, and none went on from one look to the next."""
    BUSY = "busy"


def compare_slots(before: Any, after: Any) -> SlotsSeen:
    """Compare two replies of `/slots`, some seconds apart."""
    earlier, later = _slots(before), _slots(after)
    if not later:
        return SlotsSeen.UNKNOWN
    if any(not slot.get("is_processing") for slot in later):
        return SlotsSeen.IDLE
    return (
        SlotsSeen.STILL
        if list(map(_place, earlier)) == list(map(_place, later))
        else (SlotsSeen.BUSY)
    )


def _slots(reply: Any) -> list[dict[str, Any]]:
    found = reply if isinstance(reply, list) else []
    return [slot for slot in found if isinstance(slot, dict)]


def _place(slot: dict[str, Any]) -> tuple[Any, ...]:
    """How far a slot is: another request, or more of the same, makes another place."""
    return slot.get("id_task"), slot.get("n_prompt_tokens_processed"), slot.get("next_token")
