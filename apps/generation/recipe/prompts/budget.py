"""The budget that every template runs within, and its values as text (pure).

A loop's body costs its size at each turn, a text its length. Whatever the template says, a prompt
is built in a moment and in little memory, or refused.
"""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from apps.generation.recipe.problems import RecipeError

MAX_PROMPT = 200_000  # characters of a finished prompt
MAX_CHARACTERS = 10 * MAX_PROMPT  # of all texts built on the way
MAX_STEPS = 100_000  # parts of the template that its loops go through, turn by turn


@dataclass
class Budget:
    """Limits of one prompt."""

    steps: int = MAX_STEPS
    characters: int = MAX_CHARACTERS

    def spend_steps(self, cost: int) -> None:
        self.steps -= cost
        if self.steps < 0:
            raise RecipeError.one(
                f"Its loops take more than {MAX_STEPS:,} steps: shorten the list."
            )

    def spend_characters(self, characters: int) -> None:
        self.characters -= characters
        if characters > MAX_PROMPT or self.characters < 0:
            raise RecipeError.one(f"A text in it comes out longer than {MAX_PROMPT:,} characters.")


budget: ContextVar[Budget] = ContextVar("budget")


def to_text(value: Any) -> str:
    """A value as templates and exports print it: empty for null, JSON for lists and objects."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def field_of(value: Any, name: str) -> Any:
    """The field of an object, as `value.name` in a template; None where there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    if value is None:
        return None
    raise RecipeError.one(f"“{to_text(value)[:40]}” has no field “{name}”: it is not an object.")
