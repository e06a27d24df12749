"""Ready recipes to start from. The demo model is trained on prompts of the first three kinds."""

from dataclasses import dataclass
from typing import Any

from apps.generation.recipe import column_recipes
from apps.generation.recipe.column_recipes import SYSTEM, TOPICS

PRODUCTS = [
    *("kettle", "toaster", "desk lamp", "bookcase", "backpack", "vacuum cleaner"),
    *("smartphone", "laptop", "keyboard", "folding bike", "rain jacket", "coffee machine"),
]
INTENTS = [
    *("cancel_order", "track_parcel", "refund_order", "change_address", "login_account"),
    *("exchange_shoes", "praise_service", "wrong_charge_bill"),
]


def _labelled(label: str, values: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["text", label],
        "properties": {
            "text": {"type": "string", "maxLength": 300},
            label: {"type": "string", "enum": values},
        },
    }


@dataclass(frozen=True)
class Starter:
    key: str
    name: str
    description: str
    recipe: dict[str, Any]


STARTERS = (
    Starter(
        "reviews",
        "Reviews by sentiment",
        "Short product reviews, positive and negative, as text and label.",
        {
            "system": SYSTEM,
            "prompt": "Write a {{ sentiment }} review of a {{ product }}.",
            "attributes": {"sentiment": ["positive", "negative"], "product": PRODUCTS},
            "schema": _labelled("label", ["positive", "negative"]),
        },
    ),
    Starter(
        "intents",
        "Labelled intents",
        "Help desk messages with the customer’s intent. Training data for a router.",
        {
            "system": SYSTEM,
            "prompt": "Write a customer message with the intent {{ intent }}.",
            "attributes": {"intent": INTENTS},
            "schema": _labelled("intent", INTENTS),
        },
    ),
    Starter(
        "tickets",
        "Support tickets",
        "Tickets about your topics, as plain text with the topic as label.",
        {
            "system": SYSTEM,
            "prompt": "Write a support ticket about {{ topic }}.",
            "attributes": {"topic": TOPICS},
        },
    ),
    Starter(
        "qa",
        "Questions from documents",
        "Questions and answers from the passages of a document you paste.",
        column_recipes.QUESTIONS,
    ),
    Starter(
        "paraphrases",
        "Paraphrases",
        "Several paraphrases of each of your texts, with the label kept.",
        column_recipes.PARAPHRASES,
    ),
    Starter(
        "chat",
        "Chat fine-tuning pairs",
        "User and assistant messages, scored by a judge. For chat fine-tuning.",
        column_recipes.CONVERSATIONS,
    ),
    Starter(
        "more",
        "More like these rows",
        "New texts in the style of your own examples.",
        column_recipes.MORE_LIKE_THESE,
    ),
)
BY_KEY = {starter.key: starter for starter in STARTERS}


def more_like(dataset: int, labels: list[str], rows: int) -> dict[str, Any]:
    """More rows of some labels of a dataset, each from three real examples of its label."""
    share, left = divmod(rows, len(labels))
    quotas = {label: share + (at < left) for at, label in enumerate(labels)}
    return {
        "system": SYSTEM,
        "columns": [
            {"name": "label", "kind": "category", "values": labels},
            {
                "name": "examples",
                "kind": "seed",
                "dataset": dataset,
                "match": "label",
                "match_field": "label",
                "count": 3,
                "template": "- {{ text }}",
                "keep": False,
            },
            {
                "name": "text",
                "kind": "text",
                "prompt": "These are real messages with the label “{{ label }}”:\n"
                "{{ examples }}\n\n"
                "Write another one with the same label, about something else. Only the message.",
                "checks": [{"kind": "lacks", "text": '{"'}],  # an answer in JSON all the same
            },
        ],
        "quotas": {"label": quotas},
    }
