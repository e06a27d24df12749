"""Writes the trained network as a GGUF file that llama.cpp loads."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
from model import Llama
from tokenizer import END, START, TEMPLATE
from tokenizers import Tokenizer

NAMES = {
    "embed.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "out.weight": "output.weight",
    "attn_norm.weight": "attn_norm.weight",
    "ffn_norm.weight": "ffn_norm.weight",
    "q.weight": "attn_q.weight",
    "k.weight": "attn_k.weight",
    "v.weight": "attn_v.weight",
    "o.weight": "attn_output.weight",
    "gate.weight": "ffn_gate.weight",
    "up.weight": "ffn_up.weight",
    "down.weight": "ffn_down.weight",
}


def gguf_name(name: str) -> str:
    if name.startswith("blocks."):
        _, number, rest = name.split(".", 2)
        return f"blk.{number}.{NAMES[rest]}"
    return NAMES[name]


def export(model: Llama, tokenizer: Tokenizer, path: Path) -> None:
    shape = model.shape
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_name("Workbench demo")
    w.add_author("The Workbench developers")
    w.add_description(
        "A tiny chat model trained on made-up text, for trying the workbench offline."
    )
    w.add_license("MIT")
    w.add_languages(["en"])
    w.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    w.add_context_length(shape.context)
    w.add_embedding_length(shape.width)
    w.add_block_count(shape.layers)
    w.add_feed_forward_length(shape.hidden)
    w.add_head_count(shape.heads)
    w.add_head_count_kv(shape.heads)
    w.add_rope_dimension_count(shape.width // shape.heads)
    w.add_rope_freq_base(shape.rope_base)
    w.add_layer_norm_rms_eps(shape.eps)
    w.add_vocab_size(shape.vocab)
    w.add_float32("general.sampling.temp", 0.4)
    w.add_float32("general.sampling.min_p", 0.05)

    parts = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(parts["vocab"], key=parts["vocab"].__getitem__)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types([control if t in (START, END) else normal for t in tokens])
    w.add_token_merges([" ".join(m) for m in parts["merges"]])
    w.add_eos_token_id(tokenizer.token_to_id(END))
    w.add_eot_token_id(tokenizer.token_to_id(END))
    w.add_pad_token_id(tokenizer.token_to_id(END))
    w.add_add_bos_token(False)
    w.add_add_space_prefix(False)
    w.add_chat_template(TEMPLATE)

    for name, p in model.named_parameters():
        kind = np.float16 if p.ndim == 2 else np.float32
        w.add_tensor(gguf_name(name), p.detach().numpy().astype(kind))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
