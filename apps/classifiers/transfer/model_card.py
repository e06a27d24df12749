"""Write the model card of an exported classifier."""

from pathlib import Path
from typing import Any

LONG = {
    "reject": "it was not trained on any",
    "cut": "here their beginning was used, predict.py leaves that to you",
    "mean": "here the mean of their parts was used, predict.py leaves that to you",
}


SCORES = """\
| accuracy | {accuracy:.4f} ({accuracy_low:.4f} to {accuracy_high:.4f}, 95 %) |
| macro F1 | {macro_f1:.4f} |
| log-loss | {log_loss:.4f} |
| calibration error (ECE, 15 bins) | {ece:.4f} |
| majority-class baseline (“{majority_label}”) | {majority_baseline:.4f} |"""
FAVOURED = (
    "Rare labels were weighed like common ones: add `favour` of the card to the logits before "
    "you take the largest. The probabilities stay as they are.\n"
)
TEXT = Path(__file__).with_name("model_card.md.template").read_text("utf-8")


def model_card(card: dict[str, Any]) -> str:
    """Write the model card in the order people look: task, scores, requirements, data."""
    metrics, trained = card["metrics"], card["trained_on"]
    return TEXT.format(
        card=card,
        trained=trained,
        day=card["created"][:10],
        rows=metrics.get("rows", 0),
        scores=SCORES.format(**metrics) if metrics else "| not tested here | |",
        prefix=card["preparation"].get("prefix") or "none",
        too_long=LONG[card["preparation"].get("long_texts", "reject")],
        favoured=FAVOURED if card.get("favour") else "",
        unsure=card["gates"].get("unsure", 0.5),
        max_logit=card["gates"].get("max_logit"),
        versions=", ".join(f"{name} {version}" for name, version in trained["versions"].items()),
        labels="\n".join(f"- {label}" for label in card["labels"]),
    )
