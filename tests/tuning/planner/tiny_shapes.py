"""Models of every kind of KV cache, of some kilobytes each, that a real llama-server loads."""

from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np

from tests.tiny_gguf import VOCABULARY, add_tokenizer

WIDTH = 128
FEED_FORWARD = 64
CONTEXT = 65_536
RANK, ROTATED, NOT_ROTATED = 64, 32, 32


@dataclass(frozen=True)
class Shape:
    """Figures of a model; head counts are by layer where they are tuples."""

    architecture: str = "llama"
    layers: int = 2
    heads: int = 4
    kv_heads: int | tuple[int, ...] = 2
    key_length: int = 32
    value_length: int = 32
    window: int = 0
    extra: dict[str, int | float] = field(default_factory=dict)

    def kv(self, layer: int) -> int:
        return self.kv_heads if isinstance(self.kv_heads, int) else self.kv_heads[layer]


GEMMA = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}


def write_shape(path: Path, shape: Shape) -> Path:
    writer = gguf.GGUFWriter(path, shape.architecture)
    writer.add_name("shape")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(
        [FEED_FORWARD] * shape.layers if shape.architecture == "deci" else FEED_FORWARD
    )
    writer.add_head_count(
        [shape.heads] * shape.layers if shape.architecture == "deci" else shape.heads
    )
    kv_heads = shape.kv_heads
    writer.add_head_count_kv(kv_heads if isinstance(kv_heads, int) else list(kv_heads))
    writer.add_key_length(shape.key_length)
    writer.add_value_length(shape.value_length)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    if shape.window:
        writer.add_sliding_window(shape.window)
    for name, value in shape.extra.items():
        key = f"{shape.architecture}.{name}"
        if isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, value)
    add_tokenizer(writer)
    for name, dimensions in tensors(shape).items():
        writer.add_tensor(name, np.zeros(dimensions, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensors(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Dimensions of every tensor by name, outputs first."""
    found: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (VOCABULARY, WIDTH),
        "output_norm.weight": (WIDTH,),
        "output.weight": (VOCABULARY, WIDTH),
    }
    if shape.architecture in {"cohere2", "gemma2", "gemma3"}:
        del found["output.weight"]
    for layer in range(shape.layers):
        names = _attention(shape, layer) | {
            "attn_norm": (WIDTH,),
            "ffn_norm": (WIDTH,),
            "ffn_gate": (FEED_FORWARD, WIDTH),
            "ffn_up": (FEED_FORWARD, WIDTH),
            "ffn_down": (WIDTH, FEED_FORWARD),
        }
        if shape.architecture == "cohere2":
            del names["ffn_norm"]
        if shape.architecture.startswith("gemma"):
            names |= {"post_attention_norm": (WIDTH,), "post_ffw_norm": (WIDTH,)}
        if shape.architecture in {"gemma3", "qwen3"}:
            names |= dict.fromkeys(("attn_q_norm", "attn_k_norm"), (shape.key_length,))
        found |= {f"blk.{layer}.{name}.weight": size for name, size in names.items()}
    return found


def _attention(shape: Shape, layer: int) -> dict[str, tuple[int, ...]]:
    if shape.architecture == "deepseek2":
        return _compressed(shape)
    kv_heads = shape.kv(layer)
    return {
        "attn_q": (shape.heads * shape.key_length, WIDTH),
        "attn_k": (kv_heads * shape.key_length, WIDTH),
        "attn_v": (kv_heads * shape.value_length, WIDTH),
        "attn_output": (WIDTH, shape.heads * shape.value_length),
    }


def _compressed(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Attention in the manner of DeepSeek: with MLA, or with all heads (`kv_b`)."""
    value = shape.extra.get("attention.value_length_mla", shape.value_length)
    assert isinstance(value, int)
    both: dict[str, tuple[int, ...]] = {
        "attn_q_a": (RANK, WIDTH),
        "attn_q_a_norm": (RANK,),
        "attn_q_b": (shape.heads * (NOT_ROTATED + ROTATED), RANK),
        "attn_kv_a_mqa": (RANK + ROTATED, WIDTH),
        "attn_kv_a_norm": (RANK,),
        "attn_output": (WIDTH, shape.heads * value),
    }
    if "attention.key_length_mla" in shape.extra:
        return both | {
            "attn_k_b": (shape.heads, RANK, NOT_ROTATED),
            "attn_v_b": (shape.heads, value, RANK),
        }
    return both | {"attn_kv_b": (shape.heads * (NOT_ROTATED + value), RANK)}


DEEPSEEK: dict[str, int | float] = {
    "leading_dense_block_count": 2,
    "attention.q_lora_rank": RANK,
    "attention.kv_lora_rank": RANK,
    "rope.dimension_count": ROTATED,
    "expert_count": 2,
    "expert_used_count": 1,
    "expert_feed_forward_length": 32,
    "expert_shared_count": 1,
    "expert_weights_scale": 1.0,
}
SHAPES = {
    "GQA": Shape(),
    "MHA": Shape(kv_heads=4),
    "MQA": Shape(kv_heads=1, layers=4),
    "head length of its own": Shape("qwen3", key_length=64, value_length=64),
    "sliding window, every second layer": Shape("gemma2", window=512, layers=4, extra=GEMMA),
    "sliding window, five of six layers": Shape("gemma3", window=1024, layers=7),
    "sliding window, three of four layers": Shape(
        "cohere2",
        window=512,
        layers=8,
        extra={"logit_scale": 1.0, "attention.layer_norm_epsilon": 1e-5},
    ),
    "a window that Llama does not use": Shape(window=512),
    "a window that Qwen2 does not use": Shape("qwen2", window=512, layers=3),
    "heads by layer": Shape("deci", layers=3, kv_heads=(1, 4, 2)),
    "keys longer than values": Shape(
        "deepseek2", kv_heads=4, key_length=64, value_length=32, extra=DEEPSEEK
    ),
    "MLA": Shape(
        "deepseek2",
        kv_heads=1,
        key_length=RANK + ROTATED,
        value_length=RANK,
        extra=DEEPSEEK | {"attention.key_length_mla": 64, "attention.value_length_mla": 32},
    ),
}
