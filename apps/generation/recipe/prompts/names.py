"""Names of columns, as templates can use them (pure)."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from apps.generation.recipe.problems import RecipeError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
# Jinja's own words.
RESERVED = frozenset(
    {"true", "false", "none", "and", "or", "not", "in", "is", "if", "else", "elif", "self", "loop"}
)


def check_name(name: str) -> None:
    """
    Raises:
        RecipeError: no template could use the name.
    """
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        raise RecipeError.one(
            f"“{name[:60]}” is not a valid column name. Use letters, digits and _, start with a "
            "letter, and avoid reserved words."
        )


def unknown_column(name: str, columns: Sequence[str]) -> str:
    """The sentence about a name that no column has."""
    if not columns:
        return f"no column “{name}”. Add it above this column."
    close = get_close_matches(name, columns, n=1)
    hint = f" Did you mean “{close[0]}”?" if close else ""
    return f"no column “{name}”.{hint} Available columns: {', '.join(columns)}."
