"""A trained classifier as files that work without the workbench, none of which can run code."""

import base64
import csv
import io
import json
import time
import zipfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from apps.classifiers.models import Run
from apps.classifiers.prediction.predictor import Predictor

FORMAT = "workbench-classifier/1"
FORMS = ("json", "npz", "skops", "onnx", "zip")
LONG = {
    "reject": "it was not trained on any",
    "cut": "here their beginning was used, predict.py leaves that to you",
    "mean": "here the mean of their parts was used, predict.py leaves that to you",
}
CONTENT_TYPES = {"json": "application/json", "zip": "application/zip"}


def card_of(run: Run, predictor: Predictor) -> dict[str, Any]:
    """Describe the arrays: how to use them, and why to believe them."""
    described = asdict(predictor.card)
    del described["familiarity"]  # its sample stays here: vectors give their texts away
    return {
        "format": FORMAT,
        "name": run.classifier.name,
        "version": run.number,
        "created": run.created.isoformat(),
        **described,
        "gates": run.thresholds,
        "metrics": run.metrics,
        "trained_on": {
            "rows": run.train_rows,
            "data_sha256": run.data_hash,
            "judged_on": run.test_source,
            "seed": run.seed,
            "versions": run.versions,
            "C": run.fit.get("C"),
        },
    }


def as_json(card: dict[str, Any], predictor: Predictor) -> bytes:
    """Weights as base64 of little-endian float32: exact, and a third of the size of digits."""
    arrays = {
        "weights": _base64(predictor.weights),
        "bias": _base64(predictor.bias),
    }
    return json.dumps(card | {"arrays": arrays}, ensure_ascii=False, indent=1).encode()


def as_npz(card: dict[str, Any], predictor: Predictor) -> bytes:
    data = io.BytesIO()
    described = np.frombuffer(json.dumps(card).encode(), dtype=np.uint8)
    np.savez(data, weights=predictor.weights, bias=predictor.bias, card=described)
    return data.getvalue()


def as_zip(
    card: dict[str, Any],
    predictor: Predictor,
    converted: Mapping[str, bytes],
    tests: Iterable[Sequence[tuple[str, str]]],
    base_url: str,
) -> Generator[bytes]:
    """All of it, piece by piece, with the model card, a program that runs, and the test rows.

    Args:
        converted: files of other libraries, by their form.
        tests: rows of text and label, some at a time: there may be any number of them.
    """
    out = _Pieces()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", model_card(card))
        archive.writestr("predict.py", snippet(base_url))
        archive.writestr("requirements.txt", "numpy>=1.26\nopenai>=1.40\n")
        archive.writestr("classifier.npz", as_npz(card, predictor))
        archive.writestr("classifier.json", as_json(card, predictor))
        yield out.take()
        for form, data in converted.items():
            archive.writestr(f"classifier.{form}", data)
        entry = zipfile.ZipInfo("test.csv", time.localtime()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(entry, "w") as file:
            file.write(_csv([("text", "label")]))
            for rows in tests:
                # Read by the program beside it, which a formula's escape would mislead.
                file.write(_csv(rows))
                yield out.take()
    yield out.take()


class _Pieces(io.RawIOBase):
    """What an archive writes, to be taken off as it comes. It cannot be gone back in."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def _csv(rows: Sequence[tuple[str, str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def _base64(array: np.ndarray) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype="<f4")
    return {
        "dtype": "<f4",
        "shape": list(array.shape),
        "base64": base64.b64encode(little.tobytes()).decode(),
    }


def model_card(card: dict[str, Any]) -> str:
    """Write the model card in the order people look: task, scores, requirements, data."""
    metrics, trained = card["metrics"], card["trained_on"]
    labels = "\n".join(f"- {label}" for label in card["labels"])
    prefix = card["preparation"].get("prefix") or "none"
    too_long = LONG[card["preparation"].get("long_texts", "reject")]
    judged = (
        f"""| accuracy | {metrics["accuracy"]:.4f} ({metrics["accuracy_low"]:.4f} to \
{metrics["accuracy_high"]:.4f}, 95 %) |
| macro F1 | {metrics["macro_f1"]:.4f} |
| log-loss | {metrics["log_loss"]:.4f} |
| calibration error (ECE, 15 bins) | {metrics["ece"]:.4f} |
| majority-class baseline (“{metrics["majority_label"]}”) | {metrics["majority_baseline"]:.4f} |"""
        if metrics
        else "| not tested here | |"
    )
    favoured = (
        "Rare labels were weighed like common ones: add `favour` of the card to the logits before "
        "you take the largest. The probabilities stay as they are.\n"
        if card.get("favour")
        else ""
    )
    return f"""# {card["name"]}, version {card["version"]}

Logistic regression on text embeddings, with calibrated probabilities. Made {card["created"][:10]}.

| Measured on {metrics.get("rows", 0):,} rows it never saw | |
|---|---|
{judged}

## What it needs
Vectors of **{card["embedding_model"]}**, {card["dimensions"]} dimensions, unit length,
prefix: {prefix}. Embeddings from any other model give wrong results, often with high
confidence too. Texts that are too long for the model: {too_long}.

## Use
`python predict.py` repeats the score above on `test.csv`; `python predict.py "a text"` labels one.
`classifier.npz` and `classifier.json` hold the same numbers; `classifier.skops` is a scikit-learn
estimator (`skops.io.load("classifier.skops", trusted=[])`), `classifier.onnx` a graph
(vectors -> logits, probabilities). None of them is a pickle: reading them runs no code.
{favoured}
## When not to rely on it
Probability below {card["gates"].get("unsure", 0.5)}: unsure between labels. Largest logit below \
{card["gates"].get("max_logit")}: none of these labels.

## Made from
{trained["rows"]:,} rows (SHA-256 of data and split {trained["data_sha256"]}), judged on \
{trained["judged_on"]}; C {trained["C"]}, temperature {card["temperature"]:.6f}, seed \
{trained["seed"]}; {", ".join(f"{k} {v}" for k, v in trained["versions"].items())}.

## Labels
{labels}
"""


def snippet(base_url: str) -> str:
    """A program of some forty lines: numpy, and the OpenAI SDK against one's own server."""
    return f'''"""Label texts with classifier.npz. Without arguments, reproduce the test score.

Set OPENAI_BASE_URL (now {base_url}) and OPENAI_API_KEY to your own embedding server.
"""

import csv
import json
import os
import sys

import numpy as np
from openai import APIConnectionError, AuthenticationError, OpenAI

with np.load("classifier.npz", allow_pickle=False) as file:
    weights, bias = file["weights"], file["bias"]
    card = json.loads(bytes(file["card"]))
client = OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "{base_url}"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)


def embed(texts):
    prefix, keep = card["preparation"].get("prefix", ""), card["dimensions"]
    rows = []
    for start in range(0, len(texts), 32):
        given = [prefix + text for text in texts[start : start + 32]]
        try:
            reply = client.embeddings.create(model=card["embedding_model"], input=given)
        except AuthenticationError:
            sys.exit("The embedding server refuses the key: set OPENAI_API_KEY.")
        except APIConnectionError:
            sys.exit(f"Nobody answers at {{client.base_url}}: set OPENAI_BASE_URL.")
        rows += [item.embedding for item in sorted(reply.data, key=lambda item: item.index)]
    vectors = np.asarray(rows, dtype=np.float32)
    if vectors.shape[1] < keep:
        sys.exit(f"This is another model: {{vectors.shape[1]}} numbers a text instead of {{keep}}.")
    vectors = vectors[:, :keep]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def classify(texts):
    logits = embed(texts) @ weights.T + bias
    scaled = logits / np.float32(card["temperature"])
    scaled -= scaled.max(axis=1, keepdims=True)
    probabilities = np.exp(scaled)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    chosen = logits + np.asarray(card.get("favour") or 0, dtype=np.float32)
    for row, best, largest in zip(probabilities, chosen.argmax(axis=1), logits.max(axis=1)):
        yield card["labels"][best], float(row[best]), gate(float(row[best]), float(largest))


def gate(confidence, largest_logit):
    """Why the label should not be relied on, or nothing."""
    least = card["gates"].get("max_logit")
    if least is not None and largest_logit < least:
        return "none of these"
    return "unsure" if confidence < card["gates"].get("unsure", 0) else ""


if len(sys.argv) > 1:
    for text, (label, confidence, doubt) in zip(sys.argv[1:], classify(sys.argv[1:])):
        print(f"{{confidence:6.1%}}  {{label}}{{f' ({{doubt}})' if doubt else ''}}  {{text}}")
else:
    with open("test.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        sys.exit("test.csv holds no rows: this classifier was not judged where it was exported.")
    found = classify([row["text"] for row in rows])
    right = sum(label == row["label"] for row, (label, _, _) in zip(rows, found))
    print(f"rows {{len(rows)}} of the {{card['metrics'].get('rows', 0)}} it was judged on")
    print(f"accuracy here   {{right / len(rows):.6f}}")
    print(f"accuracy stored {{card['metrics'].get('accuracy', float('nan')):.6f}}")
'''
