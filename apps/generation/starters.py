"""Ready recipes to start from. The demo model is trained on prompts of this kind."""

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
        "Messages to a help desk, each with what the customer wants: data for a router.",
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
        "Tickets about your topics, as plain text with the topic beside it.",
        {
            "system": SYSTEM,
            "prompt": "Write a support ticket about {{ topic }}.",
            "attributes": {"topic": TOPICS},
        },
    ),
)
BY_KEY = {starter.key: starter for starter in STARTERS}
