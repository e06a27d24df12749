"""Figures from the times of answers."""

import pytest

from apps.tuning.sweep.figures import Timing, knee, percentile, summarise
from apps.tuning.sweep.plan import Load


def answer(
    first: float,
    *,
    every: float = 0.1,
    tokens: int = 11,
    prompt: int | None = 100,
    cached: int | None = 0,
) -> Timing:
    """Of a request at 0; each token a piece."""
    return Timing(0.0, [first + every * n for n in range(tokens)], tokens, prompt, cached)


def test_rates_are_those_of_the_time_in_which_all_work() -> None:
    """Two prompts are processed until 2 s; ten tokens of each come within the second after."""
    point = summarise(Load(2, 100), [[answer(1.0, tokens=21), answer(2.0)]])
    assert point.prompt_rate == pytest.approx(200 / 2)
    assert point.generation_rate == pytest.approx(20)
    assert point.per_sequence == pytest.approx(10)
    assert (point.first_token_p50, point.rounds) == (1.5, 1)
    assert point.first_token_p95 == pytest.approx(1.95)


def test_rate_of_sequences_that_never_generate_together_is_that_of_the_whole_time() -> None:
    point = summarise(Load(2, 100), [[answer(1.0), answer(3.0)]])
    assert point.generation_rate == pytest.approx(21 / 3)


def test_figures_are_medians_of_the_rounds() -> None:
    rounds = [[answer(1.0, every=every)] for every in (0.1, 0.2, 10.0)]
    assert summarise(Load(1, 100), rounds).generation_rate == pytest.approx(5)


def test_what_a_server_does_not_report_is_none() -> None:
    point = summarise(Load(1, 100), [[answer(1.0, prompt=None, cached=None, tokens=1)]])
    assert (point.prompt_rate, point.cached_share, point.generation_rate) == (None, None, None)
    assert point.per_sequence is None


def test_cached_prompts_have_a_share_and_no_prompt_rate() -> None:
    point = summarise(Load(2, 100, is_cached=True), [[answer(0.1, cached=90), answer(0.1)]])
    assert (point.cached_share, point.prompt_rate) == (0.45, None)


def test_pieces_of_several_tokens_count_as_these() -> None:
    timing = Timing(0.0, [1.0, 1.5, 2.0], 9, 10, None)
    assert summarise(Load(1, 10), [[timing]]).generation_rate == pytest.approx(6)


def test_percentile_interpolates() -> None:
    assert percentile([4.0, 1.0, 2.0, 3.0], 50) == 2.5
    assert percentile([7.0], 95) == 7.0


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ({1: 10, 2: 20, 4: 38, 8: 42, 16: 44}, 4),
        ({1: 10, 2: 20, 4: 40, 8: 80}, None),
        ({1: 10, 2: 19}, None),
        ({1: 157, 2: 219, 4: 373, 8: 475, 16: 812}, None),
        ({1: 50, 2: 60, 4: 40}, 2),
    ],
)
def test_knee_is_where_more_sequences_stop_to_pay(
    curve: dict[int, float], expected: int | None
) -> None:
    assert knee(curve) == expected
