"""Checks a column's text has to pass, each with a sentence for when it does not (pure).

Patterns run in RE2, whose time grows with the length of the text alone: a pattern somebody wrote
cannot keep the worker busy.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

import re2  # type: ignore[import-untyped]
from annotated_types import Ge, Le
from pydantic import BeforeValidator, Field, StrictInt, StrictStr, model_validator

from apps.generation.recipe.columns.language import check_language, language_of
from apps.generation.recipe.fields import Part, Says
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts import templates

MAX_CHECKS = 20
MAX_PATTERN = 1_000  # characters
MIN_LANGUAGE_LETTERS = 20  # a shorter text tells no language from another
MIN_LANGUAGE_PROBABILITY = 0.6
PATTERN_MEMORY = 8 << 20

Kind = Literal["length", "contains", "lacks", "matches", "differs", "language", "expression"]
Length = Annotated[StrictInt, Ge(0), Le(1_000_000)]
KINDS: dict[Kind, str] = {
    "length": "Length",
    "contains": "Must contain",
    "lacks": "Must not contain",
    "matches": "Must match a pattern",
    "differs": "Must not match a pattern",
    "language": "Language",
    "expression": "Expression",
}


class Check(Part):
    NOT_AN_OBJECT = f"A check needs a type: {', '.join(KINDS)}."

    kind: Annotated[Kind, Says(NOT_AN_OBJECT)]
    field: Annotated[StrictStr, Says("“field” must be a string.")] = ""
    """Field of a structured column to check; empty: its free texts, joined by line breaks."""
    text: Annotated[StrictStr, Says("“text” must be a string.")] = ""
    smallest: Annotated[Length, Says("“min” must be a number of characters.")] = Field(
        0, alias="min"
    )
    largest: Annotated[Length, Says("“max” must be a number of characters.")] = Field(
        0, alias="max"
    )
    """Characters; 0 for no limit."""

    @classmethod
    def unknown_key(cls, key: str, data: Mapping[str, Any]) -> Problem:
        return Problem((), f"Unknown check key “{key}”.")

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        """Each kind has what it needs."""
        match self.kind:
            case "length":
                if not self.smallest and not self.largest:
                    raise RecipeError.one("Enter a minimum or a maximum length.")
                if self.largest and self.smallest > self.largest:
                    raise RecipeError.one("The minimum length is larger than the maximum.")
            case "matches" | "differs":
                _pattern(self.text)
            case "language":
                check_language(self.text)
            case "expression":
                templates.check_expression(self.text, None)
            case _ if not self.text.strip():
                raise RecipeError.one("Enter the text to look for.")
        return self

    def check_names(self, names: Sequence[str] | None) -> None:
        """Raises RecipeError where its text names a column that does not exist."""
        if self.kind == "expression":
            templates.check_expression(self.text, names)
        elif self.kind in {"contains", "lacks"} and "{{" in self.text:
            templates.check(self.text, names)

    def problem(self, text: str, values: Mapping[str, Any]) -> str:
        """The reason why the text does not pass, as a sentence; empty where it does."""
        return _PROBLEMS[self.kind](self, text, values)

    def to_json(self) -> dict[str, Any]:
        limits = {"min": self.smallest, "max": self.largest} if self.kind == "length" else {}
        text = {} if self.kind == "length" else {"text": self.text}
        optional = {"field": self.field, **limits}
        return {
            "kind": self.kind,
            **{key: value for key, value in optional.items() if value},
            **text,
        }


def _check_count(checks: Any) -> Any:
    checks = checks or []
    if not isinstance(checks, list | tuple) or len(checks) > MAX_CHECKS:
        raise RecipeError.one(f"Checks must be a list of up to {MAX_CHECKS}.")
    return checks


Checks = Annotated[tuple[Check, ...], BeforeValidator(_check_count)]


@lru_cache(maxsize=256)
def _pattern(source: str) -> Any:
    if not source:
        raise RecipeError.one("Enter a pattern.")
    if len(source) > MAX_PATTERN:
        raise RecipeError.one(f"The pattern is too long. The limit is {MAX_PATTERN:,} characters.")
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    try:
        return re2.compile(source, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not a regular expression"
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise RecipeError.one(f"The pattern is not valid: {reason}.") from error


# --- The sentence of each kind ------------------------------------------------------


def _length_problem(check: Check, text: str, values: Mapping[str, Any]) -> str:
    if check.smallest and len(text) < check.smallest:
        return f"Too short: {len(text):,} characters, minimum {check.smallest:,}."
    if check.largest and len(text) > check.largest:
        return f"Too long: {len(text):,} characters, maximum {check.largest:,}."
    return ""


def _contains_problem(check: Check, text: str, values: Mapping[str, Any]) -> str:
    wanted = _rendered(check.text, values)
    return "" if wanted.casefold() in text.casefold() else f"Required text missing: “{wanted}”."


def _lacks_problem(check: Check, text: str, values: Mapping[str, Any]) -> str:
    for line in _rendered(check.text, values).splitlines():
        if line.strip() and line.strip().casefold() in text.casefold():
            return f"Contains forbidden text: “{line.strip()}”."
    return ""


def _matches_problem(check: Check, text: str, values: Mapping[str, Any]) -> str:
    return "" if _pattern(check.text).search(text) else "Does not match the pattern."


def _differs_problem(check: Check, text: str, values: Mapping[str, Any]) -> str:
    return "Matches a forbidden pattern." if _pattern(check.text).search(text) else ""


def _language_problem(check: Check, text: str, values: Mapping[str, Any]) -> str:
    if sum(character.isalpha() for character in text) < MIN_LANGUAGE_LETTERS:
        return ""
    code, probability = language_of(text)
    if code == check.text or probability < MIN_LANGUAGE_PROBABILITY:
        return ""
    return f"Language is “{code}”, expected “{check.text}”."


def _expression_problem(check: Check, text: str, values: Mapping[str, Any]) -> str:
    try:
        return "" if templates.evaluate(check.text, values) else f"Check failed: {check.text}"
    except RecipeError as error:
        return str(error)


def _rendered(source: str, values: Mapping[str, Any]) -> str:
    """The text, in which columns may stand."""
    return templates.render(source, values) if "{{" in source else source


_PROBLEMS: dict[Kind, Callable[[Check, str, Mapping[str, Any]], str]] = {
    "length": _length_problem,
    "contains": _contains_problem,
    "lacks": _lacks_problem,
    "matches": _matches_problem,
    "differs": _differs_problem,
    "language": _language_problem,
    "expression": _expression_problem,
}
