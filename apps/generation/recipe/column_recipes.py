"""The ready recipes with several columns."""

from typing import Any

SYSTEM = "You write realistic synthetic data."
TOPICS = [
    *("a login problem", "a billing problem", "slow performance", "a crash"),
    *("a delivery problem", "an email problem", "a printer problem", "a security problem"),
]

QUESTIONS: dict[str, Any] = {
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
}

PARAPHRASES: dict[str, Any] = {
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
}

CONVERSATIONS: dict[str, Any] = {
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
}

MORE_LIKE_THESE: dict[str, Any] = {
    "system": SYSTEM,
    "columns": [
        {
            "name": "examples",
            "kind": "seed",
            "text": "Where is my parcel?\nI want my money back.\nMy card was charged twice.",
            "format": "lines",
            "count": 3,
            "template": "- {{ text }}",
            "keep": False,
        },
        {
            "name": "text",
            "kind": "text",
            "prompt": "Write one more text of this kind, about something else:\n{{ examples }}",
        },
    ],
}
