"""Numbers as people type them into a form (pure)."""

import re

from apps.generation.recipe.params import ParamValue
from apps.llm.thinking import parse_thinking, thinking_choices


def whole_number(text: str, smallest: int, largest: int) -> int:
    """
    Raises:
        ValueError: with the sentence for the field.
    """
    if re.fullmatch(r"[0-9]{1,13}", text) and smallest <= int(text) <= largest:
        return int(text)
    raise ValueError(f"Enter an integer from {smallest:,} to {largest:,}.")


def number(text: str, smallest: float, largest: float) -> float | None:
    """The number, with a comma or a point; None for an empty field.

    Raises:
        ValueError: with the sentence for the field.
    """
    if not text:
        return None
    text = text.replace(",", ".")
    if re.fullmatch(r"[0-9]{1,7}(\.[0-9]{0,6})?", text) and smallest <= float(text) <= largest:
        return float(text)
    example = "0.9" if smallest == 0 else "85"
    limits = "" if smallest == 0 else f", from {smallest:g} to {largest:g}"
    raise ValueError(f"Enter a number, such as {example}{limits}.")


def fraction(text: str) -> float | None:
    """A percentage from 50 to 100, as a fraction; None for an empty field.

    Raises:
        ValueError: with the sentence for the field.
    """
    percent = number(text, 50, 100)
    return None if percent is None else percent / 100


def parameter(name: str, text: str) -> ParamValue:
    """A sampling parameter. An empty field takes the default away.

    Raises:
        ValueError: with the sentence for the field.
    """
    if name == "thinking":
        setting = parse_thinking(text) if text else "off"
        return None if setting == "off" else setting  # off is the default of jobs
    value = number(text, 0, 10**6)
    is_whole = name == "max_tokens" and value is not None and value.is_integer()
    return int(value) if is_whole and value is not None else value


def key_of(text: str) -> int:
    """The primary key in a form or an address; 0 for none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def thinking_options(chosen: str) -> list[tuple[str, str]]:
    """Values and labels of the select for thinking; `chosen` may be another number of tokens."""
    off, *others = thinking_choices(chosen, first="off")
    return [("", off[1]), *others]


def as_typed(value: ParamValue) -> str:
    """A parameter as its field shows it; empty where the server decides."""
    if value is None or value == "off":
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
