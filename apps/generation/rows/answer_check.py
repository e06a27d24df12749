"""Checks of an answer before it becomes a row (pure)."""

import json
import math
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from apps.core.schemas.json_schemas import Schema, closed
from apps.generation.recipe.recipe import Recipe
from apps.similarity.text_key import texts_fingerprint

MAX_JSON_DEPTH = 50


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """Result of a check. `code` and `reason` are empty for a good answer."""

    output: Any = None
    code: str = ""
    reason: str = ""


def check_answer(
    schema: Schema | None,
    text: str,
    finish_reason: str,
    only_thought: str = "",
    *,
    loosely: bool = False,
) -> AnswerCheck:
    """Read and check the fields of an answer. Nothing is repaired; a fenced block of JSON is read.

    Args:
        only_thought: the reason to reject an answer that is nothing but a thought.
        loosely: check required fields and types alone, for an answer that a person accepts.
    """
    if only_thought:
        return AnswerCheck(code="thinking", reason=only_thought)
    if finish_reason == "length":
        return AnswerCheck(
            output=None if schema else {"text": text.strip()},
            code="length",
            reason="Max tokens reached before the answer was complete.",
        )
    if finish_reason != "stop":
        return AnswerCheck(code="unfinished", reason=f"The model stopped with “{finish_reason}”.")
    if schema is None:
        output: Any = {"text": text.strip()}
    else:
        try:
            output = parse_json(_unfenced(text))
        except ValueError as error:
            return AnswerCheck(code="invalid_json", reason=f"Not valid JSON: {error}.")
        if problem := first_error(schema, output, loosely=loosely):
            return AnswerCheck(output=output, code="schema", reason=problem)
    texts = free_texts(schema, output)
    if texts and not any(part.strip() for part in texts):
        return AnswerCheck(output=output, code="empty", reason="The text is empty.")
    return AnswerCheck(output=output)


def first_error(schema: Schema, row: Any, *, loosely: bool = False) -> str:
    """The first error of a row as a sentence; empty if it fits the schema.

    Args:
        loosely: check required fields and types only, no limits.
    """
    return next(iter(errors(schema, row, loosely=loosely)), "")


def errors(schema: Schema, row: Any, *, loosely: bool = False) -> list[str]:
    """Return all errors of a row, see `first_error`."""
    found = sorted(
        Draft202012Validator(closed(schema)).iter_errors(row), key=lambda error: error.json_path
    )
    if loosely:
        found = [error for error in found if error.validator in {"required", "type"}]
    return [_sentence(error) for error in found]


def _sentence(error: ValidationError) -> str:
    place = ".".join(str(step) for step in error.absolute_path)
    message = error.message if len(error.message) <= 200 else f"{error.message[:200]}…"
    return f"“{place}”: {message}." if place else f"{message}."


# --- Free texts ---------------------------------------------------------------


def free_texts(schema: Schema | None, row: Any) -> list[str]:
    """The strings the model was free to write, in the schema's order."""
    if schema is None:
        return [text for text in row.values() if isinstance(text, str)]
    if "enum" in schema or "const" in schema:
        return []
    if isinstance(row, dict):
        properties = schema.get("properties", {})
        return [
            text
            for name, inner in properties.items()
            if name in row
            for text in free_texts(inner, row[name])
        ]
    if isinstance(row, list):
        return [text for item in row for text in free_texts(schema["items"], item)]
    return [row] if isinstance(row, str) else []


def free_texts_of(recipe: Recipe, output: Any) -> list[str]:
    """Return the free texts of a finished row, of the columns that are kept."""
    if not isinstance(output, dict):
        return []
    return [
        text
        for column in recipe.text_columns
        for text in free_texts(
            column.answer_schema, {name: output.get(name) for name in column.names}
        )
    ]


def fingerprint(texts: list[str]) -> str | None:
    """Return a key that equal texts share; None without free text.

    A row of labels and numbers alone may well come twice.
    """
    return texts_fingerprint(texts) if texts else None


# --- JSON ---------------------------------------------------------------------


def _unfenced(text: str) -> str:
    """Return the content of a fenced JSON block; the whole text if there is none."""
    if text.lstrip().startswith("{"):
        return text
    begin = text.find("```")
    line, end = text.find("\n", begin), text.rfind("```")
    if begin < 0 or not begin < line < end:
        return text
    language = text[begin + 3 : line].strip().casefold()
    return text[line + 1 : end] if language in {"", "json"} else text


def parse_json(text: str) -> Any:
    """Parse a JSON text that can be stored.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or has a number that is not finite (NaN,
            1e999).
    """

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        return _storable(json.loads(text, parse_constant=refuse))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _storable(value: Any, depth: int = 0) -> Any:
    """Replace half surrogate pairs, which no file and no database takes."""
    if depth > MAX_JSON_DEPTH:
        raise ValueError("it is nested too deeply")
    match value:
        case float() if not math.isfinite(value):
            raise ValueError("a number is too large")
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_storable(item, depth + 1) for item in value]
        case dict():
            return {_storable(name): _storable(item, depth + 1) for name, item in value.items()}
    return value
