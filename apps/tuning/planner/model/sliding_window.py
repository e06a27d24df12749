"""Which layers of a model see a window of tokens alone (pure)."""

from apps.tuning.planner.model.header_values import HeaderValues

# One layer in so many sees all tokens: what llama.cpp knows of architectures whose files do not
# say it.
FULL_LAYER_EVERY = {
    "cohere2": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
}
# The files name a window, llama.cpp does not use it.
UNUSED = {"llama", "phi3", "qwen2"}
PATTERN = "attention.sliding_window_pattern"


def sliding_layers(values: HeaderValues) -> tuple[bool, ...] | None:
    """True for each layer with a sliding window; None where the file does not say which have."""
    if values.own("attention.sliding_window") is None or values.architecture in UNUSED:
        return (False,) * values.layers
    by_layer = values.array(PATTERN)
    if by_layer:
        return tuple(bool(value) for value in by_layer)
    every = values.own(PATTERN) or FULL_LAYER_EVERY.get(values.architecture)
    if every is None:
        return None
    return tuple(layer % every < every - 1 for layer in range(values.layers))
