"""Ready recipes to start from. The demo model is trained on prompts of the first three kinds."""

from dataclasses import dataclass
from typing import Any

SYSTEM = "You write realistic synthetic data."

PRODUCTS = [
    *("kettle", "toaster", "desk lamp", "bookcase", "backpack", "vacuum cleaner"),
    *("smartphone", "laptop", "keyboard", "folding bike", "rain jacket", "coffee machine"),
]
INTENTS = [
    *("cancel_order", "track_parcel", "refund_order", "change_address", "login_account"),
    *("exchange_shoes", "praise_service", "wrong_charge_bill"),
]
TOPICS = [
    *("a login problem", "a billing problem", "slow performance", "a crash"),
    *("a delivery problem", "an email problem", "a printer problem", "a security problem"),
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
        {
            "system": "You write questions that a reader of a document would ask. "
            "Every answer stands in the passage.",
            "columns": [
                {
                    "name": "passage",
                    "kind": "seed",
                    "text": "Replace this line with your document.",
                    "format": "document",
                    "order": "walk",
                },
                {
                    "name": "kind",
                    "kind": "category",
                    "values": ["a fact", "a reason", "a step to take", "a comparison"],
                    "keep": False,
                },
                {
                    "name": "pair",
                    "kind": "structured",
                    "prompt": "{{ passage_text }}\n\n"
                    "Write a question about {{ kind }} that this passage answers, and the answer.",
                    "schema": {
                        "type": "object",
                        "required": ["question", "answer"],
                        "properties": {
                            "question": {"type": "string", "maxLength": 200},
                            "answer": {"type": "string", "maxLength": 600},
                        },
                    },
                },
            ],
        },
    ),
    Starter(
        "paraphrases",
        "Paraphrases",
        "Several paraphrases of each of your texts, with the label kept.",
        {
            "system": "You say the same thing in other words. The meaning stays exactly.",
            "columns": [
                {
                    "name": "original",
                    "kind": "seed",
                    "text": "text,label\nWhere is my parcel?,track_parcel\n"
                    "I want my money back.,refund_order",
                    "format": "csv",
                    "order": "walk",
                },
                {
                    "name": "style",
                    "kind": "category",
                    "values": ["short", "polite", "annoyed", "with a typo", "as a child would"],
                },
                {
                    "name": "text",
                    "kind": "text",
                    "prompt": "Say this in other words, {{ style }}: {{ original_text }}",
                    "checks": [{"kind": "length", "max": 300}],
                },
            ],
        },
    ),
    Starter(
        "chat",
        "Chat fine-tuning pairs",
        "User and assistant messages, scored by a judge. For chat fine-tuning.",
        {
            "system": "You write conversations between a person and a helpful assistant.",
            "columns": [
                {
                    "name": "person",
                    "kind": "persona",
                    "about": "customers of a small web shop",
                    "values": [
                        "a student who is short of money",
                        "a retired teacher, patient and exact",
                        "a father of three in a hurry",
                        "a shop owner who buys for her business",
                    ],
                },
                {"name": "topic", "kind": "category", "values": TOPICS},
                {
                    "name": "question",
                    "kind": "text",
                    "prompt": "What does {{ person }} write to the help desk about {{ topic }}? "
                    "Only the message.",
                },
                {
                    "name": "answer",
                    "kind": "text",
                    "prompt": "Now the assistant's answer to that message. Only the answer.",
                },
                {
                    "name": "judge",
                    "kind": "judge",
                    "criteria": [
                        {
                            "name": "helpful",
                            "description": "Does the answer solve the problem?",
                            "max": 5,
                            "at_least": 3,
                        }
                    ],
                },
            ],
        },
    ),
    Starter(
        "more",
        "More like these rows",
        "New texts in the style of your own examples.",
        {
            "system": SYSTEM,
            "columns": [
                {
                    "name": "examples",
                    "kind": "seed",
                    "text": "Where is my parcel?\nI want my money back.\n"
                    "My card was charged twice.",
                    "format": "lines",
                    "count": 3,
                    "template": "- {{ text }}",
                    "keep": False,
                },
                {
                    "name": "text",
                    "kind": "text",
                    "prompt": "Write one more text of this kind, about something else:\n"
                    "{{ examples }}",
                },
            ],
        },
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
