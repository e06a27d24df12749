"""Write the program that an export carries: numpy and the OpenAI SDK, without Workbench."""


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
