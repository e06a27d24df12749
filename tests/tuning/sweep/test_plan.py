"""The plan of a sweep: what fits, and what comes first."""

import pytest

from apps.tuning.sweep.plan import Load, Room, plan_loads, prompt_lengths, widths


@pytest.mark.parametrize(
    ("slots", "expected"), [(1, [1]), (4, [1, 2, 4]), (6, [1, 2, 4, 6]), (9, [1, 2, 4, 8, 9])]
)
def test_widths_double_up_to_all_slots(slots: int, expected: list[int]) -> None:
    assert widths(slots) == expected


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (8192, [256, 1024, 4096]),
        (2048, [88, 352, 1408]),
        (None, [88, 352, 1408]),
        (256, [16, 64]),
        (128, []),
    ],
)
def test_prompt_lengths_fit_a_slot(context: int | None, expected: list[int]) -> None:
    assert prompt_lengths(Room(4, context), 64) == expected


def test_loads_cover_widths_lengths_cache_and_json() -> None:
    loads = plan_loads(Room(4, 8192), 64)
    assert len(loads) == len(set(loads)) == 7 * 3
    assert {load.width for load in loads} == {1, 2, 4}
    plain = {(load.prompt_tokens, load.is_cached) for load in loads if not load.is_json}
    assert plain == {(length, cached) for length in (256, 1024, 4096) for cached in (False, True)}
    assert {(load.prompt_tokens, load.is_cached) for load in loads if load.is_json} == {
        (1024, True)
    }
    assert loads[:3] == [Load(1, 256), Load(2, 256), Load(4, 256)]


def test_loads_keep_within_a_shared_cache() -> None:
    loads = plan_loads(Room(4, 8192, pool=8192), 64)
    assert max(load.width for load in loads if load.prompt_tokens == 256) == 4
    assert max(load.width for load in loads if load.prompt_tokens == 4096) == 1


def test_no_load_fits_a_slot_without_room() -> None:
    assert plan_loads(Room(4, 100), 64) == []


def test_load_describes_itself() -> None:
    assert Load(1, 1024).description == "1 sequence, prompts of 1,024 tokens, uncached"
    assert Load(4, 256, is_cached=True, is_json=True).description == (
        "4 sequences, prompts of 256 tokens, cached, JSON"
    )
