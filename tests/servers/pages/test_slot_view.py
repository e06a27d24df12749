"""Who is shown in which slot, from what the server says and what the workbench holds."""

import pytest

from apps.servers.pages.slot_view import Box, Holding, Occupant, Phase, Reading, boxes

IDLE = Reading(0)


def chat(started: float = 0.0, tokens: int = 0) -> Holding:
    return Holding(Occupant.CHAT, "Chat", tokens, started)


def job(label: str = "Reviews v2", started: float = 0.0, tokens: int = 0) -> Holding:
    return Holding(Occupant.JOB, label, tokens, started)


def busy(number: int, task: int = 0, **known: int) -> Reading:
    return Reading(number, True, task, **known)


@pytest.mark.parametrize(
    ("readings", "holdings", "expected"),
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
            [busy(0, task=1), busy(1, task=2), Reading(2)],
            [job()],
            ["Reviews v2", "Other program", "Free"],
            id="beyond what we hold is another program",
        ),
        pytest.param(
            [Reading(0), Reading(1)],
            [chat()],
            ["Chat", "Free"],
            id="sent and not in a slot yet",
        ),
        pytest.param([], [job(), job()], ["Reviews v2", "Reviews v2", "Free"], id="shows none"),
        pytest.param([], [job()] * 4, ["Reviews v2"] * 4, id="more in flight than its width now"),
    ],
)
def test_who_is_in_which_box(
    readings: list[Reading], holdings: list[Holding], expected: list[str]
) -> None:
    assert [box.who for box in boxes(readings, holdings, width=3)] == expected


@pytest.mark.parametrize(
    ("reading", "holding", "details"),
    [
        # llama-server tells how much it has read, never of how much.
        pytest.param(busy(0, held=2048, decoded=0), None, ["reading", "2,048 tokens so far"]),
        # Of ours the estimate is known: what is reserved, without the answer it leaves room for.
        pytest.param(
            busy(0, held=500, decoded=0, remain=400),
            chat(tokens=1400),
            ["reading, about 50 %", "500 tokens so far"],
        ),
        pytest.param(
            busy(0, held=2000, decoded=0, remain=400),
            chat(tokens=1400),
            ["reading, about 99 %", "2,000 tokens so far"],
        ),
        pytest.param(
            busy(0, held=2459, decoded=40, remain=1460, cached=2418),
            None,
            ["40 of 1,500 tokens", "100 % cached"],
        ),
        pytest.param(busy(0, held=140, decoded=40, remain=-1), None, ["40 tokens"]),
        pytest.param(busy(0, held=140, decoded=40, cached=25), None, ["40 tokens", "25 % cached"]),
        pytest.param(busy(0), None, ["reading"]),  # an old build says that it is busy, and no more
    ],
)
def test_how_far_it_is(reading: Reading, holding: Holding | None, details: list[str]) -> None:
    (box,) = boxes([reading], [holding] if holding else [], width=1)
    assert box.details == details


def test_the_bar_shows_the_answer() -> None:
    (box,) = boxes([busy(0, held=300, decoded=100, remain=300)], [chat()], width=1)
    assert (box.phase, box.share, box.level) == (Phase.WRITING, 0.25, 5)


def test_a_server_that_shows_nothing_says_that_we_are_at_work() -> None:
    (box,) = boxes([], [job()], width=1)
    assert box.details == ["at work"]


def test_said_aloud() -> None:
    box = Box(3, Occupant.JOB, "Reviews v2", Phase.WRITING, written=12, at_most=80)
    assert box.sentence == "Slot 3: Reviews v2, 12 of 80 tokens"
    assert Box(0).sentence == "Slot 0: Free"


@pytest.mark.parametrize(
    ("box", "letter"),
    [
        (Box(0), ""),
        (Box(0, Occupant.OTHER), "?"),
        (Box(0, Occupant.CHAT), "C"),
        (Box(0, Occupant.JOB, "reviews"), "R"),
    ],
)
def test_in_a_letter(box: Box, letter: str) -> None:
    assert box.letter == letter
