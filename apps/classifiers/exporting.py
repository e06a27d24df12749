"""A trained classifier as files that work without the workbench, none of which can run code."""

import base64
import csv
import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from apps.classifiers import trainer
from apps.classifiers.models import Run
from apps.classifiers.predictor import Predictor

FORMAT = "workbench-classifier/1"
FORMS = ("json", "npz", "skops", "onnx", "zip")
CONTENT_TYPES = {"json": "application/json", "zip": "application/zip"}


def card_of(run: Run, predictor: Predictor) -> dict[str, Any]:
    """What one must know to use the arrays, and to believe them."""
    return {
        "format": FORMAT,
        "name": run.classifier.name,
        "version": run.number,
        "created": run.created.isoformat(),
        **asdict(predictor.card),
        "gates": run.gates,
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


def as_skops(predictor: Predictor) -> bytes:
    """A LogisticRegression for scikit-learn, which skops loads without trusting anything."""
    import skops.io  # type: ignore[import-untyped]

    card = predictor.card
    estimator = trainer.as_estimator(
        predictor.weights, predictor.bias, card.temperature, card.labels
    )
    dumped: bytes = skops.io.dumps(estimator)
    return dumped


def as_onnx(predictor: Predictor) -> bytes:
    """vectors (n, d) float32 -> logits, probabilities (n, labels); the labels are in its metadata.

    Written by hand, a matrix product and a softmax: no converter to trust.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    card = predictor.card
    labels, dimensions = len(card.labels), card.dimensions
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["vectors", "weights", "bias"], ["logits"], transB=1),
            helper.make_node("Div", ["logits", "temperature"], ["calibrated"]),
            helper.make_node("Softmax", ["calibrated"], ["probabilities"], axis=1),
        ],
        "classifier",
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [None, dimensions])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, labels])
            for name in ("logits", "probabilities")
        ],
        [
            numpy_helper.from_array(predictor.weights, "weights"),
            numpy_helper.from_array(predictor.bias, "bias"),
            numpy_helper.from_array(np.asarray(card.temperature, np.float32), "temperature"),
        ],
    )
    # Versions that runtimes of the last years read.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {"labels": json.dumps(card.labels)})
    onnx.checker.check_model(model)
    written: bytes = model.SerializeToString()
    return written


def as_zip(
    card: dict[str, Any], predictor: Predictor, tests: Sequence[tuple[str, str]], base_url: str
) -> bytes:
    """All of it, with the model card, a program that runs, and the test rows it repeats."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", model_card(card))
        archive.writestr("predict.py", snippet(base_url))
        archive.writestr("requirements.txt", "numpy>=1.26\nopenai>=1.40\n")
        archive.writestr("classifier.npz", as_npz(card, predictor))
        archive.writestr("classifier.json", as_json(card, predictor))
        archive.writestr("classifier.skops", as_skops(predictor))
        archive.writestr("classifier.onnx", as_onnx(predictor))
        archive.writestr("test.csv", "".join(_csv(tests)))
    return data.getvalue()


def _csv(tests: Sequence[tuple[str, str]]) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("text", "label"))
    writer.writerows(tests)  # read by the program beside it, which a formula's escape would mislead
    yield out.getvalue()


def _base64(array: np.ndarray) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype="<f4")
    return {
        "dtype": "<f4",
        "shape": list(array.shape),
        "base64": base64.b64encode(little.tobytes()).decode(),
    }


def model_card(card: dict[str, Any]) -> str:
    """In the order people look: what it does, how well, with what, from what."""
    metrics, trained = card["metrics"], card["trained_on"]
    labels = "\n".join(f"- {label}" for label in card["labels"])
    prefix = card["preparation"].get("prefix") or "none"
    judged = (
        f"""| accuracy | {metrics["accuracy"]:.4f} ({metrics["accuracy_low"]:.4f} to \
{metrics["accuracy_high"]:.4f}, 95 %) |
| macro F1 | {metrics["macro_f1"]:.4f} |
| log-loss | {metrics["log_loss"]:.4f} |
| calibration error (ECE, 15 bins) | {metrics["ece"]:.4f} |
| always “{metrics["majority_label"]}” | {metrics["majority_baseline"]:.4f} |"""
        if metrics
        else "| not judged here | |"
    )
    return f"""# {card["name"]}, version {card["version"]}

Logistic regression on text embeddings, with calibrated probabilities. Made {card["created"][:10]}.

| Measured on {metrics.get("rows", 0):,} rows it never saw | |
|---|---|
{judged}

## What it needs
Vectors of **{card["embedding_model"]}**, {card["dimensions"]} numbers a text, unit length,
prefix: {prefix}. Vectors of any other model are another language to it and give nonsense, with high
confidence too.

## Use
`python predict.py` repeats the score above on `test.csv`; `python predict.py "a text"` labels one.
`classifier.npz` and `classifier.json` hold the same numbers; `classifier.skops` is a scikit-learn
estimator (`skops.io.load("classifier.skops", trusted=[])`), `classifier.onnx` a graph
(vectors -> logits, probabilities). None of them is a pickle: reading them runs no code.

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
    return f'''"""Labels texts with classifier.npz; without arguments it repeats the test score.

Set OPENAI_BASE_URL (now {base_url}) and OPENAI_API_KEY to your own embedding server.
"""

import csv
import json
import os
import sys

import numpy as np
from openai import OpenAI

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
        reply = client.embeddings.create(model=card["embedding_model"], input=given)
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
    for row, best in zip(probabilities, logits.argmax(axis=1)):
        yield card["labels"][best], float(row[best])


if len(sys.argv) > 1:
    for text, (label, confidence) in zip(sys.argv[1:], classify(sys.argv[1:])):
        print(f"{{confidence:6.1%}}  {{label}}  {{text}}")
else:
    with open("test.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = classify([row["text"] for row in rows])
    right = sum(label == row["label"] for row, (label, _) in zip(rows, found))
    print(f"accuracy here   {{right / len(rows):.6f}}")
    print(f"accuracy stored {{card['metrics'].get('accuracy', float('nan')):.6f}}")
'''
