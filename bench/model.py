"""A model of random weights as large as it takes for a token to cost real time on a CPU.

What is measured of a workbench needs a model server that behaves like one, not a model that knows
anything. The half a megabyte of `tests.tiny_gguf` writes a token in 0.2 ms, a model people use in
10 to 30: this one is as deep and wide as asked. It reads and writes bytes like the tiny one, never
ends an answer by itself, and under a JSON schema it closes a string after `letters` of them on
average: rows of very uneven length, each a function of its seed.
"""

import math
from pathlib import Path

import gguf
import numpy as np

from tests.tiny_gguf import (
    BIAS_AFTER_NORM,
    BIAS_DIMENSION,
    SPECIAL_TOKENS,
    VOCABULARY,
    add_tokenizer,
)

CONTEXT = 8192
HEAD_WIDTH = 64
KV_HEADS = 2
TOKEN_SCALE = 0.1
LOGIT_SCALE = 0.6  # standard deviation of what the prompt changes in a logit
CACHE = Path(__file__).resolve().parent.parent / ".cache"


def write_model(*, width: int, layers: int, letters: int = 100) -> Path:
    """Writes the model, unless an earlier run left it, and returns its path."""
    path = CACHE / f"bench-bytes-{width}-{layers}-{letters}.gguf"
    if path.exists():
        return path
    CACHE.mkdir(exist_ok=True)
    writer = gguf.GGUFWriter(path.with_suffix(".part"), "llama")
    writer.add_name(f"bench-{width}x{layers}")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(3 * width)
    writer.add_head_count(width // HEAD_WIDTH)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD_WIDTH)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    add_tokenizer(writer)
    for name, weights in _weights(width, layers, letters).items():
        writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.with_suffix(".part").rename(path)
    return path


def _weights(width: int, layers: int, letters: int) -> dict[str, np.ndarray]:
    """Tensors by GGUF name, shaped (outputs, inputs); the same on every call."""
    rng = np.random.default_rng(0)

    def random(outputs: int, inputs: int, scale: float) -> np.ndarray:
        weights = rng.standard_normal((outputs, inputs), dtype=np.float32)
        return weights * np.float32(scale / math.sqrt(inputs))

    def layer_output(inputs: int) -> np.ndarray:
        weights = random(width, inputs, 0.05)
        weights[BIAS_DIMENSION] = 0.0
        return weights

    tokens = random(VOCABULARY, width, TOKEN_SCALE * math.sqrt(width))
    # One number, the same for every token, which is BIAS_AFTER_NORM when the vector is normalised.
    share = BIAS_AFTER_NORM**2 / width
    tokens[:, BIAS_DIMENSION] = TOKEN_SCALE * math.sqrt(share * width / (1 - share))
    output = random(VOCABULARY, width, LOGIT_SCALE)
    output[:, BIAS_DIMENSION] = _biases(letters) / BIAS_AFTER_NORM
    found = {
        "token_embd.weight": tokens,
        "output_norm.weight": np.ones(width, dtype=np.float32),
        "output.weight": output,
    }
    for layer in range(layers):
        block = f"blk.{layer}"
        found[f"{block}.attn_norm.weight"] = np.ones(width, dtype=np.float32)
        found[f"{block}.attn_q.weight"] = random(width, width, 1.0)
        found[f"{block}.attn_k.weight"] = random(KV_HEADS * HEAD_WIDTH, width, 1.0)
        found[f"{block}.attn_v.weight"] = random(KV_HEADS * HEAD_WIDTH, width, 1.0)
        found[f"{block}.attn_output.weight"] = layer_output(width)
        found[f"{block}.ffn_norm.weight"] = np.ones(width, dtype=np.float32)
        found[f"{block}.ffn_gate.weight"] = random(3 * width, width, 1.0)
        found[f"{block}.ffn_up.weight"] = random(3 * width, width, 1.0)
        found[f"{block}.ffn_down.weight"] = layer_output(3 * width)
    return found


def _biases(letters: int) -> np.ndarray:
    """Added to each token's logit, shape (VOCABULARY,). Letters, and now and then a quote."""
    likelihood = dict.fromkeys(b"abcdefghijklmnopqrstuvwxyz", 1.0)
    quote = sum(likelihood.values()) / letters
    likelihood |= {ord('"'): quote} | dict.fromkeys(b",:{}", quote)
    biases = np.full(VOCABULARY, math.log(1e-9), dtype=np.float32)
    for byte, times in likelihood.items():
        biases[len(SPECIAL_TOKENS) + byte] = math.log(times)
    return biases
