"""Checks a column's text has to pass, each with a sentence for when it does not (pure).

Patterns run in RE2, whose time grows with the length of the text alone: a pattern somebody wrote
cannot keep the worker busy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts import templates

MAX_CHECKS = 20
MAX_PATTERN = 1_000  # characters
MIN_LANGUAGE_LETTERS = 20  # a shorter text tells no language from another
MIN_LANGUAGE_PROBABILITY = 0.6
PATTERN_MEMORY = 8 << 20

KINDS = {
    "length": "Length",
    "contains": "Must contain",
    "lacks": "Must not contain",
    "matches": "Must match a pattern",
    "differs": "Must not match a pattern",
    "language": "Language",
    "expression": "Expression",
}


@dataclass(frozen=True, slots=True)
class Check:
    kind: str
    field: str = ""
    """Which of a structured column's fields; empty: its free texts, one after the other."""
    text: str = ""
    smallest: int = 0
    largest: int = 0
    """Characters; 0 for no limit."""

    def problem(self, text: str, values: Mapping[str, Any]) -> str:
        """Why the text does not pass, as a sentence; empty where it does."""
        return _PROBLEMS[self.kind](self, text, values)

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind}
        if self.field:
            found["field"] = self.field
        if self.kind == "length":
            found |= {"min": self.smallest} if self.smallest else {}
            found |= {"max": self.largest} if self.largest else {}
        else:
            found["text"] = self.text
        return found


def read(data: Any) -> Check:
    """A check in the API's words: `kind`, `text` or `min` and `max`, perhaps `field`.

    Raises:
        RecipeError: saying what is wrong with it.
    """
    if not isinstance(data, Mapping) or data.get("kind") not in KINDS:
        raise RecipeError.of(f"A check needs a type: {', '.join(KINDS)}.")
    for unknown in data.keys() - {"kind", "field", "text", "min", "max"}:
        raise RecipeError.of(f"Unknown check key “{unknown}”.")
    check = Check(
        kind=data["kind"],
        field=_text(data, "field"),
        text=_text(data, "text"),
        smallest=_length(data, "min"),
        largest=_length(data, "max"),
    )
    match check.kind:
        case "length":
            if not check.smallest and not check.largest:
                raise RecipeError.of("Enter a minimum or a maximum length.")
            if check.largest and check.smallest > check.largest:
                raise RecipeError.of("The minimum length is larger than the maximum.")
        case "matches" | "differs":
            _pattern(check.text)
        case "language":
            _check_language(check.text)
        case "expression":
            templates.check_expression(check.text, None)
        case _ if not check.text.strip():
            raise RecipeError.of("Enter the text to look for.")
    return check


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise RecipeError.of(f"“{name}” must be a string.")
    return value


def _length(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 1_000_000:
        raise RecipeError.of(f"“{name}” must be a number of characters.")
    return value


@lru_cache(maxsize=256)
def _pattern(source: str) -> Any:
    if not source:
        raise RecipeError.of("Enter a pattern.")
    if len(source) > MAX_PATTERN:
        raise RecipeError.of(f"The pattern is too long. The limit is {MAX_PATTERN:,} characters.")
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    try:
        return re2.compile(source, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not a regular expression"
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise RecipeError.of(f"The pattern is not valid: {reason}.") from error


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import (  # type: ignore[import-untyped]  # slow to load: when needed
        MODEL_FILE,
        LanguageIdentifier,
    )

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _check_language(code: str) -> None:
    known = sorted(_identifier().labels)
    if code not in known:
        raise RecipeError.of(f"Unknown language “{code}”. Use {', '.join(known)}.")


def language_of(text: str) -> tuple[str, float]:
    """(ISO 639-1 code, probability) by py3langid (Lui and Baldwin 2012, langid.py)."""
    code, probability = _identifier().classify(text)
    return str(code), float(probability)


# --- What each kind says ------------------------------------------------------


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


_PROBLEMS: dict[str, Callable[[Check, str, Mapping[str, Any]], str]] = {
    "length": _length_problem,
    "contains": _contains_problem,
    "lacks": _lacks_problem,
    "matches": _matches_problem,
    "differs": _differs_problem,
    "language": _language_problem,
    "expression": _expression_problem,
}
