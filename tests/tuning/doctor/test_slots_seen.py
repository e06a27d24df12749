"""Two looks at the slots of a server."""

from typing import Any

import pytest

from apps.tuning.doctor.slots_seen import SlotsSeen, compare_slots

IDLE = {"id": 0, "is_processing": False}


def at_work(task: int, written: int) -> dict[str, Any]:
    return {"is_processing": True, "id_task": task, "next_token": [{"n_decoded": written}]}


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        ([IDLE, at_work(1, 5)], [IDLE, at_work(1, 9)], SlotsSeen.IDLE),
        ([at_work(1, 5)], [at_work(1, 9)], SlotsSeen.BUSY),
        ([at_work(1, 5)], [at_work(2, 5)], SlotsSeen.BUSY),
        ([at_work(1, 5), at_work(2, 0)], [at_work(1, 5), at_work(2, 0)], SlotsSeen.STILL),
        ([], [], SlotsSeen.UNKNOWN),
        ({"error": "?"}, "?", SlotsSeen.UNKNOWN),
    ],
)
def test_slots_are_compared(before: Any, after: Any, seen: SlotsSeen) -> None:
    assert compare_slots(before, after) is seen
