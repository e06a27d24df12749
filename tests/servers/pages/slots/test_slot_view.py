"""The views of slots, from the server's report and our permits."""

import pytest

from apps.servers.facts.slot_status import SlotStatus
from apps.servers.pages.slots.slot_view import (
    HeldPermit,
    Occupant,
    Phase,
    SlotView,
    slot_views,
)

IDLE = SlotStatus(0)


def chat(started: float = 0.0, tokens: int = 0) -> HeldPermit:
    return HeldPermit(Occupant.CHAT, "Chat", tokens, started)


def job(label: str = "Reviews v2", started: float = 0.0, tokens: int = 0) -> HeldPermit:
    return HeldPermit(Occupant.JOB, label, tokens, started)


def busy(number: int, task: int = 0, **known: int) -> SlotStatus:
    return SlotStatus(number, busy=True, task=task, **known)


@pytest.mark.parametrize(
    ("statuses", "permits", "expected"),
    [
        pytest.param([IDLE], [], ["Free"], id="idle"),
        pytest.param([busy(0)], [], ["Other program"], id="none of ours"),
        pytest.param([busy(0)], [chat()], ["Chat"], id="a chat"),
        pytest.param(
            [busy(0, task=9), busy(1, task=4)],
            [chat(started=2), job(started=1)],
            ["Chat", "Reviews v2"],
            id="the oldest of ours is in the slot with the oldest task",
        ),
        pytest.param(
            [busy(0, task=1), busy(1, task=2), SlotStatus(2)],
            [job()],
            ["Reviews v2", "Other program", "Free"],
            id="beyond what we hold is another program",
        ),
        pytest.param(
            [SlotStatus(0), SlotStatus(1)],
            [chat()],
            ["Chat", "Free"],
            id="sent and not in a slot yet",
        ),
        pytest.param([], [job(), job()], ["Reviews v2", "Reviews v2", "Free"], id="shows none"),
        pytest.param([], [job()] * 4, ["Reviews v2"] * 4, id="more in flight than its width now"),
    ],
)
def test_slot_views_name_the_owner(
    statuses: list[SlotStatus], permits: list[HeldPermit], expected: list[str]
) -> None:
    assert [box.owner for box in slot_views(statuses, permits, slots=3)] == expected


@pytest.mark.parametrize(
    ("status", "permit", "details"),
    [
        # llama-server reports the processed prompt tokens, never of how many.
        pytest.param(
            busy(0, held=2048, decoded=0), None, ["processing prompt", "2,048 prompt tokens"]
        ),
        # Of ours the estimate is known: what is reserved, without the answer it leaves room for.
        pytest.param(
            busy(0, held=500, decoded=0, remain=400),
            chat(tokens=1400),
            ["processing prompt, about 50%", "500 prompt tokens"],
        ),
        pytest.param(
            busy(0, held=2000, decoded=0, remain=400),
            chat(tokens=1400),
            ["processing prompt, about 99%", "2,000 prompt tokens"],
        ),
        pytest.param(
            busy(0, held=2459, decoded=40, remain=1460, cached_tokens=2418),
            None,
            ["40 of 1,500 tokens", "100% cached"],
        ),
        pytest.param(busy(0, held=140, decoded=40, remain=-1), None, ["40 tokens"]),
        pytest.param(
            busy(0, held=140, decoded=40, cached_tokens=25), None, ["40 tokens", "25% cached"]
        ),
        pytest.param(
            busy(0), None, ["processing prompt"]
        ),  # an old build says that it is busy, and no more
    ],
)
def test_slot_view_details(
    status: SlotStatus, permit: HeldPermit | None, details: list[str]
) -> None:
    (box,) = slot_views([status], [permit] if permit else [], slots=1)
    assert box.details == details


def test_slot_view_level_follows_the_answer() -> None:
    (box,) = slot_views([busy(0, held=300, decoded=100, remain=300)], [chat()], slots=1)
    assert (box.phase, box.share, box.level) == (Phase.GENERATING, 0.25, 5)


def test_slot_views_without_a_report_show_our_permits() -> None:
    (box,) = slot_views([], [job()], slots=1)
    assert box.details == ["processing"]


def test_slot_view_sentence() -> None:
    box = SlotView(3, Occupant.JOB, "Reviews v2", Phase.GENERATING, generated=12, limit=80)
    assert box.sentence == "Slot 3: Reviews v2, 12 of 80 tokens"
    assert SlotView(0).sentence == "Slot 0: Free"


@pytest.mark.parametrize(
    ("box", "letter"),
    [
        (SlotView(0), ""),
        (SlotView(0, Occupant.OTHER), "?"),
        (SlotView(0, Occupant.CHAT), "C"),
        (SlotView(0, Occupant.JOB, "reviews"), "R"),
    ],
)
def test_slot_view_letter(box: SlotView, letter: str) -> None:
    assert box.letter == letter
