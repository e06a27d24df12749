"""What a header says of a model, and what it leaves open."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from apps.tuning.errors import PlanError
from apps.tuning.planner.model.gguf_header import GgufHeader, Skipped, Tensor, Value, read_header
from apps.tuning.planner.model.model_shape import ModelShape, read_shape
from tests.tiny_gguf import write_tiny_gguf

LLAMA: dict[str, Value] = {
    "general.architecture": "llama",
    "llama.block_count": 4,
    "llama.attention.head_count": 8,
    "llama.embedding_length": 512,
}

STARCODER: dict[str, Value] = {
    **{key.replace("llama", "starcoder2"): value for key, value in LLAMA.items()},
    "general.architecture": "starcoder2",
}


def shape_of(values: Mapping[str, Value], *tensors: Tensor) -> ModelShape:
    return read_shape(GgufHeader(values, tensors, complete=True))


def test_read_shape_reads_a_file(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    shape = read_shape(read_header(path.read_bytes()), file_bytes=path.stat().st_size)
    assert (shape.name, shape.heads, shape.context, shape.vocabulary) == ("tiny", 4, 8192, 259)
    assert [(layer.kv_heads, layer.key_length) for layer in shape.layers] == [(2, 16), (2, 16)]
    assert shape.weight_bytes is not None
    assert shape.read_bytes is not None
    # The token table is not read: only one row of it.
    assert shape.weight_bytes - shape.read_bytes == 259 * 64 * 4


def test_what_a_header_does_not_say_is_not_reported() -> None:
    shape = shape_of(LLAMA)
    assert (shape.name, shape.quantisation, shape.context, shape.experts) == (None,) * 4
    assert (shape.weight_bytes, shape.read_bytes, shape.upper_bounds) == (None, None, ())


def test_kv_heads_default_to_the_heads_and_their_length_to_the_width() -> None:
    assert [(layer.kv_heads, layer.key_length) for layer in shape_of(LLAMA).layers] == [(8, 64)] * 4


def test_an_unknown_pattern_of_sliding_windows_is_an_upper_bound() -> None:
    shape = shape_of(STARCODER | {"starcoder2.attention.sliding_window": 4096})
    assert not any(layer.sliding for layer in shape.layers)
    assert "sliding window" in shape.upper_bounds[0]


@pytest.mark.parametrize("pattern", [2, (True, False, True, False)])
def test_a_pattern_of_sliding_windows_is_read(pattern: Value) -> None:
    shape = shape_of(
        STARCODER
        | {
            "starcoder2.attention.sliding_window": 4096,
            "starcoder2.attention.sliding_window_pattern": pattern,
        }
    )
    assert [layer.sliding for layer in shape.layers] == [True, False, True, False]
    assert shape.upper_bounds == ()


def test_of_experts_only_those_asked_are_read() -> None:
    shape = shape_of(
        LLAMA | {"llama.expert_count": 8, "llama.expert_used_count": 2},
        Tensor("blk.0.ffn_up_exps.weight", 800),
        Tensor("blk.0.attn_q.weight", 100),
    )
    assert (shape.weight_bytes, shape.read_bytes) == (900, 300)


def test_an_encoder_keeps_no_cache() -> None:
    values: dict[str, Value] = {"general.architecture": "bert", "bert.block_count": 6}
    assert shape_of(values).layers == ()


def test_recurrent_layers_keep_a_state_in_place_of_tokens() -> None:
    values: dict[str, Value] = {
        "general.architecture": "qwen3next",
        "qwen3next.block_count": 8,
        "qwen3next.attention.head_count": 16,
        "qwen3next.attention.head_count_kv": 2,
        "qwen3next.attention.key_length": 256,
        "qwen3next.attention.value_length": 256,
        "qwen3next.full_attention_interval": 4,
        "qwen3next.ssm.conv_kernel": 4,
        "qwen3next.ssm.inner_size": 4096,
        "qwen3next.ssm.state_size": 128,
        "qwen3next.ssm.group_count": 16,
        "tokenizer.ggml.tokens": Skipped(1000),
    }
    shape = shape_of(values)
    assert [layer.kv_heads for layer in shape.layers] == [0, 0, 0, 2] * 2
    assert shape.state_bytes == 6 * (3 * (4096 + 2 * 16 * 128) + 4096 * 128) * 4
    assert "recurrent" in shape.upper_bounds[0]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "general.architecture"),
        ({"general.architecture": "llama"}, "block_count"),
        (LLAMA | {"llama.block_count": 10**6}, "is 1000000"),
        ({**LLAMA, "llama.attention.head_count": 0}, "head_count"),
        ({**LLAMA, "llama.embedding_length": -1}, "embedding_length"),
    ],
)
def test_a_header_without_the_figures_is_refused(values: dict[str, Value], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        shape_of(values)
