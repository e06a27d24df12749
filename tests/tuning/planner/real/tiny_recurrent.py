"""A recurrent model (Mamba) of some kilobytes that a real llama-server loads."""

from pathlib import Path

import gguf
import numpy as np

from tests.tiny_gguf import VOCABULARY, add_tokenizer

WIDTH, INNER, STATE, KERNEL, RANK, LAYERS = 128, 256, 64, 4, 4, 3  # INNER is twice WIDTH


def write_recurrent(path: Path) -> Path:
    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_name("recurrent")
    writer.add_context_length(65_536)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(RANK)
    add_tokenizer(writer)
    for name, dimensions in _tensors().items():
        writer.add_tensor(name, np.zeros(dimensions, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tensors() -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (VOCABULARY, WIDTH),
        "output_norm.weight": (WIDTH,),
        "output.weight": (VOCABULARY, WIDTH),
    }
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (WIDTH,),
        "ssm_in.weight": (2 * INNER, WIDTH),
        "ssm_conv1d.weight": (INNER, KERNEL),
        "ssm_conv1d.bias": (INNER,),
        "ssm_x.weight": (RANK + 2 * STATE, INNER),
        "ssm_dt.weight": (INNER, RANK),
        "ssm_dt.bias": (INNER,),
        "ssm_a": (INNER, STATE),
        "ssm_d": (INNER,),
        "ssm_out.weight": (WIDTH, INNER),
    }
    for index in range(LAYERS):
        found |= {f"blk.{index}.{name}": size for name, size in layer.items()}
    return found
