"""What results say as a whole, their JSON and their tables."""

import pytest

from apps.tuning.sweep.figures import Point
from apps.tuning.sweep.plan import Load
from apps.tuning.sweep.results import ChatTurns, SweepResults, Turn, is_alike
from apps.tuning.sweep.tables import (
    Table,
    describe,
    make_tables,
    table_markdown,
    table_text,
    to_markdown,
)


def point(width: int, rate: float | None, prompt: int = 256, *, cached: bool = False) -> Point:
    load = Load(width, prompt, is_cached=cached)
    return Point(load, 3, None if cached else 1234.5, rate, 0.004, 1.5, 0.9 if cached else None)


def results(*points: Point, slots: int = 8, best: int | None = 8) -> SweepResults:
    return SweepResults("m", slots, None, points=list(points), best_width=best, probed={8: 99.0})


CURVE = (point(1, 100), point(2, 180), point(4, 280), point(8, 320))


@pytest.mark.parametrize(
    ("points", "slots", "best", "expected"),
    [
        # 4 sequences keep 70 of 100 tokens/s each, 8 keep 40: three rows and a person.
        (CURVE, 8, 8, 3),
        (CURVE, 8, 2, 2),
        (CURVE[:1], 8, 8, 1),
        # All slots keep their speed: one is the person's.
        ((point(1, 100), point(8, 700)), 8, 8, 7),
        (CURVE, 1, 1, None),
        (CURVE, 8, None, None),
        ((), 8, 8, None),
        ((point(1, None),), 8, 8, None),
    ],
)
def test_mixed_width_leaves_a_person_a_slot_and_half_the_speed(
    points: tuple[Point, ...], slots: int, best: int | None, expected: int | None
) -> None:
    assert results(*points, slots=slots, best=best).mixed_width == expected


def test_curve_is_of_one_kind_of_load() -> None:
    found = results(*CURVE, point(1, 50, 1024), point(2, None))
    assert found.curve("generation_rate") == {1: 100, 4: 280, 8: 320}
    assert found.curve("generation_rate", Load(4, 1024)) == {1: 50}
    assert results().curve("generation_rate") == {}
    assert not is_alike(Load(1, 256), Load(1, 256, is_json=True))


def test_results_survive_json() -> None:
    full = results(*CURVE, point(2, None, cached=True))
    full.chat = ChatTurns(None, [Turn(0.5, 1.0)], [Turn(0.1, 0.5)])
    full.notes, full.flags, full.build = ["Paused."], "-np 8", "b1"
    assert SweepResults.from_json(full.to_json()) == full
    assert full.to_json()["probed"] == {8: 99.0} or full.to_json()["probed"] == {"8": 99.0}


def test_speed_up_of_a_chat_is_that_of_the_averages() -> None:
    chat = ChatTurns(9, [Turn(0.5, 1.0), Turn(0.7, 1.0)], [Turn(0.2, 0.5), Turn(0.1, 0.5)])
    assert chat.speed_up == pytest.approx(4)


def test_description_says_what_is_not_reported() -> None:
    lines = describe(results(best=None))
    assert lines == ["m, 8 slots of context not reported, build not reported."]


def test_description_names_widths_time_and_notes() -> None:
    found = results(*CURVE)
    found.context, found.build, found.flags = 4096, "b1", "-np 8"
    found.seconds, found.paused_seconds, found.notes = 61.4, 7.0, ["Stopped early."]
    assert describe(found) == [
        "m, 8 slots of 4,096 tokens, build b1.",
        "Measured for 61 s, paused for 7 s.",
        "Flags: -np 8",
        "Best number of rows in parallel: 8 (99.0 tokens/s).",
        "While people use the server too: 3.",
        "More than 4 sequences at the same time bring little.",
        "Stopped early.",
    ]


def test_tables_are_of_what_was_measured() -> None:
    assert [table.title for table in make_tables(SweepResults("m", 4, None))] == []
    assert [table.title for table in make_tables(results(*CURVE, point(1, 90, cached=True)))] == [
        "Rows in parallel",
        "Sequences at the same time (prompts of 256 tokens)",
        "Prompts of 256 tokens, uncached",
        "Prompts of 256 tokens, cached",
    ]


def test_sequences_have_total_rate_each_and_speed_up() -> None:
    table = make_tables(results(*CURVE, point(16, None)))[1]
    assert table.rows[1] == ["2", "180", "90.0", "1.80x"]
    assert table.rows[-1] == ["16", "–", "–", "–"]


def test_loads_have_times_and_cached_share() -> None:
    cold, cached = make_tables(results(point(1, 12.34), point(2, 20, cached=True)))[2:]
    assert cold.rows == [["1", "1,234", "12.3", "12.3", "4.0 ms", "1,500 ms", "–"]]
    assert cached.rows == [["2", "–", "20.0", "10.0", "4.0 ms", "1,500 ms", "90%"]]


def test_chat_has_average_median_and_speed_up() -> None:
    found = results()
    found.chat = ChatTurns(
        None,
        [Turn(0.4, 1.0), Turn(0.6, 1.2), Turn(0.8, 1.4)],
        [Turn(0.4, 1.0), Turn(0.1, 0.6), Turn(0.1, 0.6)],
    )
    table = make_tables(found)[-1]
    assert table.title == "Chat of 3 turns (last prompt: tokens not reported)"
    assert table.head == ["", "turn 1", "turn 2", "turn 3", "average", "median"]
    names = "first token, no cache", "first token, prompt cache", "speed-up"
    assert [row[0] for row in table.rows[:3]] == list(names)
    assert table.rows[0][1:] == ["400 ms", "600 ms", "800 ms", "600 ms", "600 ms"]
    assert table.rows[2][1:] == ["1.00x", "6.00x", "8.00x", "3.00x", "6.00x"]
    assert table.rows[5][4:] == ["1.64x", "2.00x"]


def test_markdown_escapes_what_would_end_a_cell() -> None:
    table = Table("T", ["a|b", "c"], [["x\ny", "1"]])
    assert table_markdown(table) == "### T\n\n| a\\|b | c |\n| --- | ---: |\n| x y | 1 |"


def test_text_aligns_columns() -> None:
    assert table_text(Table("T", ["rows", "n"], [["1", "100"]])) == "T\n  rows    n\n  1     100"


def test_markdown_begins_with_the_date() -> None:
    found = results(*CURVE)
    found.started = "2026-11-24T12:00:00+00:00"
    text = to_markdown(found)
    assert text.startswith("Started 2026-11-24T12:00:00+00:00.\n\nm, 8 slots")
    assert text.endswith("|\n")
