"""Sampling parameters of a recipe or a column, in the API's words (pure)."""

from collections.abc import Callable, Mapping
from typing import Any

from apps.generation.recipe.problems import Problem, RecipeError

# What every recipe has, unless it says null. Nothing that only some servers take.
DEFAULT_PARAMS: dict[str, Any] = {"temperature": 0.9, "max_tokens": 300}
# name: (type, smallest, largest)
NUMBERS: dict[str, tuple[type, float, float]] = {
    "temperature": (float, 0.0, 5.0),
    "min_p": (float, 0.0, 1.0),
    "top_p": (float, 0.0, 1.0),
    "top_k": (int, 0, 10_000),
    "repeat_penalty": (float, 0.0, 5.0),
    "presence_penalty": (float, -2.0, 2.0),
    "frequency_penalty": (float, -2.0, 2.0),
    "max_tokens": (int, 1, 32_000),
}
MAX_STOPS, MAX_STOP = 16, 200  # texts, characters of one
MAX_THOUGHT = 32_000  # tokens
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
# Not for the request as they stand: `rows.request_for` says what becomes of them.
APART = ("max_tokens", "thinking", "reasoning_effort")


def read(data: Any) -> dict[str, Any]:
    """The parameters that were given, each within its limits. None is kept: it takes a default or a
    parameter of the recipe away.

    Raises:
        RecipeError: with every one that is wrong.
    """
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise RecipeError.of("Parameters are an object, such as temperature and max_tokens.")
    problems: list[Problem] = []
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name not in NUMBERS and name not in _OTHERS:
            known = ", ".join([*NUMBERS, *_OTHERS])
            problems.append(Problem((str(name),), f"Unknown parameter. Use {known}."))
        elif value is None:
            if name != "max_tokens":  # no request goes without
                found[name] = None
        elif problem := _number_problem(name, value) if name in NUMBERS else _OTHERS[name](value):
            problems.append(Problem((str(name),), problem))
        else:
            found[name] = value
    if problems:
        raise RecipeError(problems)
    return found


def _number_problem(name: str, value: Any) -> str:
    kind, smallest, largest = NUMBERS[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if is_number and (whole or kind is float) and smallest <= value <= largest:
        return ""
    noun = "a whole number" if kind is int else "a number"
    return f"Must be {noun} from {smallest:g} to {largest:g}."


def _thinking_problem(value: Any) -> str:
    is_budget = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_THOUGHT
    if is_budget or value in ("off", "on"):
        return ""
    return f"Must be “off”, “on” or a number of tokens from 0 to {MAX_THOUGHT:,}."


def _effort_problem(value: Any) -> str:
    return "" if value in EFFORTS else f"Must be one of {', '.join(EFFORTS)}."


def _stop_problem(value: Any) -> str:
    if (
        isinstance(value, list)
        and 1 <= len(value) <= MAX_STOPS
        and all(isinstance(text, str) and 1 <= len(text) <= MAX_STOP for text in value)
    ):
        return ""
    return f"Must be a list of 1 to {MAX_STOPS} texts of at most {MAX_STOP} characters."


_OTHERS: dict[str, Callable[[Any], str]] = {
    "thinking": _thinking_problem,
    "reasoning_effort": _effort_problem,
    "stop": _stop_problem,
}
