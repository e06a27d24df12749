"""Values of a header by name: only those that can be what they are said to be."""

import pytest

from apps.tuning.errors import PlanError
from apps.tuning.planner.model.gguf_header import Skipped, Value
from apps.tuning.planner.model.header_values import MAX_FIGURE, MAX_LAYERS, TOKENS, HeaderValues


def values_of(**own: Value) -> HeaderValues:
    values: dict[str, Value] = {"general.architecture": "llama", "llama.block_count": 3}
    return HeaderValues(values | {f"llama.{key}": value for key, value in own.items()})


@pytest.mark.parametrize("value", [True, -1, 1.5, "8", (8,), MAX_FIGURE + 1, Skipped(8)])
def test_what_is_no_sensible_number_is_not_reported(value: Value) -> None:
    assert values_of(width=value).own("width") is None


def test_zero_is_not_reported_as_a_figure_of_the_architecture() -> None:
    assert values_of(width=0).own("width") is None
    assert values_of(width=0).number("llama.width") == 0


def test_one_number_is_that_of_every_layer() -> None:
    assert values_of(heads=8).per_layer("heads") == (8, 8, 8)
    assert values_of(heads=(4, 0, 4)).per_layer("heads") == (4, 0, 4)
    assert values_of().per_layer("heads") == ()


@pytest.mark.parametrize("value", [(1, 2), (1, 2, -3), (1, 2, 3.5), Skipped(3), 3])
def test_an_array_counts_only_with_a_whole_number_for_each_layer(value: Value) -> None:
    assert values_of(heads=value).array("heads") == ()


def test_an_array_longer_than_the_layers_is_cut() -> None:
    assert values_of(heads=(1, 2, 3, 4)).array("heads") == (1, 2, 3)


def test_the_vocabulary_is_the_number_of_tokens_or_what_the_file_says() -> None:
    tokens: dict[str, Value] = {"general.architecture": "llama", "llama.block_count": 1}
    assert HeaderValues(tokens | {TOKENS: Skipped(32_000)}).vocabulary() == 32_000
    assert HeaderValues(tokens | {"llama.vocab_size": 99}).vocabulary() == 99
    assert HeaderValues(tokens).vocabulary() is None


@pytest.mark.parametrize(
    ("count", "said"), [(0, "is 0"), (MAX_LAYERS + 1, "is 1025"), ("three", "is missing")]
)
def test_an_impossible_number_of_layers_is_refused(count: Value, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        HeaderValues({"general.architecture": "llama", "llama.block_count": count})


@pytest.mark.parametrize("architecture", ["", 5])
def test_a_header_without_an_architecture_is_refused(architecture: Value) -> None:
    with pytest.raises(PlanError, match=r"general\.architecture"):
        HeaderValues({"general.architecture": architecture})
