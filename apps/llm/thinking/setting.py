"""The setting of thinking, the same wherever a model is asked. Pure."""

from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import StrictInt

MAX_BUDGET = 32_000  # tokens
BUDGETS = (512, 1_024, 2_048, 4_096, 8_192)  # tokens, as forms offer them

ThinkingSetting = Literal["default", "off", "on"] | int
"""The model's default, off, on, or a budget in tokens; 0 is off."""
StoredThinking = Annotated[StrictInt, Ge(0), Le(MAX_BUDGET)] | Literal["default", "off", "on"]
"""The same as a field of stored JSON."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
"""The effort of a thought, as OpenAI names it."""

LABELS: dict[str, str] = {"default": "Model default", "on": "On", "off": "Off"}
EXPECTED = f"Must be “default”, “off”, “on” or a number of tokens from 0 to {MAX_BUDGET:,}."


def parse_thinking(text: str) -> ThinkingSetting:
    """Return the setting that a form or an address carries.

    Raises:
        ValueError: with the sentence for the field.
    """
    match text:
        case "default" | "off" | "on":
            return text
    if text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_BUDGET)):
        tokens = int(text)
        if tokens <= MAX_BUDGET:
            return tokens or "off"
    raise ValueError(EXPECTED)


def label_of(setting: ThinkingSetting) -> str:
    """Return the words of forms and pages."""
    if isinstance(setting, int):
        return f"Up to {setting:,} tokens" if setting else LABELS["off"]
    return LABELS[setting]


def thinking_choices(chosen: str, first: str = "default") -> list[tuple[str, str]]:
    """Return values and labels of a select.

    Args:
        chosen: may be another number of tokens.
        first: the value that stands first.
    """
    modes = sorted(LABELS.items(), key=lambda choice: choice[0] != first)
    tokens = sorted({*BUDGETS, *([int(chosen)] if chosen.isdecimal() and int(chosen) else [])})
    return [*modes, *((str(budget), label_of(budget)) for budget in tokens)]
