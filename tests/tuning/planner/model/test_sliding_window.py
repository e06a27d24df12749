"""Which layers see a window of tokens alone, by what the file says and what llama.cpp knows."""

import pytest

from apps.tuning.planner.model.gguf_header import Value
from apps.tuning.planner.model.header_values import HeaderValues
from apps.tuning.planner.model.sliding_window import sliding_layers


def layers_of(architecture: str, **own: Value) -> str | None:
    """One letter a layer: s sees the window alone, f sees all; None: the file does not say."""
    values: dict[str, Value] = {
        "general.architecture": architecture,
        f"{architecture}.block_count": 6,
    }
    for key, value in own.items():
        values[f"{architecture}.attention.{key}"] = value
    found = sliding_layers(HeaderValues(values))
    return None if found is None else "".join("fs"[sliding] for sliding in found)


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("gemma2", "sfsfsf"),
        ("gemma3", "sssssf"),
        ("gpt-oss", "sfsfsf"),
        ("cohere2", "sssfss"),
        ("qwen2", "ffffff"),
        ("llama", "ffffff"),
        ("novel", None),
    ],
)
def test_the_pattern_of_an_architecture_is_what_llama_cpp_knows(
    architecture: str, expected: str | None
) -> None:
    assert layers_of(architecture, sliding_window=1024) == expected


def test_without_a_window_every_layer_sees_all() -> None:
    assert layers_of("gemma3") == "ffffff"
    assert layers_of("novel", sliding_window=0) == "ffffff"


def test_the_pattern_of_the_file_goes_before_the_known_one() -> None:
    assert layers_of("gemma3", sliding_window=8, sliding_window_pattern=3) == "ssfssf"
    by_layer = (True, False, False, True, True, False)
    assert layers_of("gemma3", sliding_window=8, sliding_window_pattern=by_layer) == "sffssf"


def test_a_pattern_of_too_few_layers_does_not_count() -> None:
    found = layers_of("gemma2", sliding_window=8, sliding_window_pattern=(True, True))
    assert found == "sfsfsf"
