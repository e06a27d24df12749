"""MTEB's Banking77 on our own embeddings: does it give the published 0.8004?

The published score of all-MiniLM-L6-v2 came from its original weights in PyTorch. This repeats the
protocol on vectors from the embedded llama.cpp and with the product's own trainer, so one number
checks the converted model, its tokens, its pooling, the server and the fit.

Two things decide the last digits. The protocol's call stops where scikit-learn's own rule says, at
the tenth step: the product's scaling goes nearer to the optimum and gives 0.8003. And llama.cpp
adds up in another order when other texts are computed beside one, which moves a prediction or two
of 30,800: here it computes one text at a time, so that the number comes out the same every time.

Run: `.venv/bin/python -m bench.classifiers.mteb_banking77`. The exit code is 1 when the score is
another one.
"""

import csv
import json
import os
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from apps.classifiers.training import estimator
from apps.embedded.llama_server import usable_cores
from apps.embedded.model_files.embedding_model import prepare
from tests.llama_process import REPOSITORY, LlamaProcess

DATA = Path(__file__).parents[1] / "data"
PUBLISHED = 0.80042207  # embeddings-benchmark/results, mteb 1.12.75
# Three of the 30,800 predictions. A wrong pooling or token moves hundreds.
TOLERANCE = 0.0001
DRAWS = 10
ROWS_PER_LABEL = 8
SEED = 42
TEXTS_PER_REQUEST = 64
AS_GIVEN = np.float32(1)


class Split(NamedTuple):
    texts: list[str]
    labels: list[str]


def main() -> int:
    train, test = read("train"), read("test")
    vectors = embed(train.texts + test.texts)
    train_vectors, test_vectors = np.split(vectors, [len(train.texts)])
    scores = [
        accuracy(train_vectors[rows], [train.labels[row] for row in rows], test_vectors, test)
        for rows in draws(train.labels)
    ]
    score = float(np.mean(scores))
    agrees = abs(score - PUBLISHED) <= TOLERANCE
    print(f"accuracy {score:.8f}, published {PUBLISHED}: {'agrees' if agrees else 'DIFFERS'}")
    return 0 if agrees else 1


def read(split: str) -> Split:
    with (DATA / f"banking77_{split}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return Split([row["text"] for row in rows], [row["label"] for row in rows])


def embed(texts: list[str]) -> np.ndarray:
    """Vectors of the product's own model and server, shape (texts, 384), float32."""
    cache = Path(os.environ.get("WORKBENCH_TEST_CACHE", REPOSITORY / ".cache"))
    parts = [
        texts[start : start + TEXTS_PER_REQUEST]
        for start in range(0, len(texts), TEXTS_PER_REQUEST)
    ]
    model = prepare(cache, print)
    with LlamaProcess(
        model, embeddings=True, parallel=1, context_per_slot=512, threads=usable_cores()
    ) as server:
        return np.concatenate([embed_part(server, part) for part in parts])


def embed_part(server: LlamaProcess, texts: list[str]) -> np.ndarray:
    request = urllib.request.Request(
        f"{server.base_url}/embeddings",
        data=json.dumps({"input": texts}).encode(),
        headers={"Authorization": f"Bearer {server.api_key}"},
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        rows = json.load(response)["data"]
    return np.array([row["embedding"] for row in rows], dtype=np.float32)


def draws(labels: list[str]) -> list[list[int]]:
    """The training rows of each draw, as MTEB makes them: one list of all rows, shuffled once more
    each time by the same permutation, of which every label keeps its first eight."""
    order = np.arange(len(labels))
    drawn = []
    for _ in range(DRAWS):
        np.random.RandomState(SEED).shuffle(order)
        taken: Counter[str] = Counter()
        rows = []
        for row in order:
            if taken[labels[row]] < ROWS_PER_LABEL:
                taken[labels[row]] += 1
                rows.append(int(row))
        drawn.append(rows)
    return drawn


def accuracy(
    vectors: np.ndarray, labels: list[str], test_vectors: np.ndarray, test: Split
) -> float:
    """MTEB's classifier: scikit-learn's with C = 1 on vectors as they are. It ends after ten of
    the hundred steps it may take."""
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    model = estimator.fit_once(vectors, codes.astype(np.int64), len(names), C=1.0, scale=AS_GIVEN)
    predicted = names[model.logits(test_vectors).argmax(axis=1)]
    return float((predicted == np.asarray(test.labels)).mean())


if __name__ == "__main__":
    sys.exit(main())
