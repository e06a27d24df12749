"""Write the model card of an exported classifier."""

from typing import Any

LONG = {
    "reject": "it was not trained on any",
    "cut": "here their beginning was used, predict.py leaves that to you",
    "mean": "here the mean of their parts was used, predict.py leaves that to you",
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
