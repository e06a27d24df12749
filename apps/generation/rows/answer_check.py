"""Checks of an answer before it becomes a row (pure)."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.judge import Judge
from apps.generation.recipe.columns.written import Text, Written
from apps.generation.recipe.prompts.budget import to_text
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
    schema: Mapping[str, Any] | None,
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
        if problem := schemas.first_error(schema, output, loosely=loosely):
            return AnswerCheck(output=output, code="schema", reason=problem)
    texts = schemas.free_texts(schema, output)
    if texts and not any(part.strip() for part in texts):
        return AnswerCheck(output=output, code="empty", reason="The text is empty.")
    return AnswerCheck(output=output)


@dataclass(frozen=True, slots=True)
class FailedCheck:
    code: str
    message: str


def first_failed_check(
    column: Written, answer: Mapping[str, Any], values: Mapping[str, Any]
) -> FailedCheck | None:
    """Return the first low score or failed check of a well-formed answer."""
    if isinstance(column, Judge) and (low := _low_score(column, answer)) is not None:
        return low
    for check in column.checks:
        text = _checked_text(column, check.field, answer)
        if problem := check.problem(text, {**values, **answer}):
            name = check.field or (column.name if isinstance(column, Text) else "")
            return FailedCheck(f"check_{check.kind}", f"{f'{name}: ' if name else ''}{problem}")
    return None


def _low_score(column: Judge, answer: Mapping[str, Any]) -> FailedCheck | None:
    for criterion in column.criteria:
        score = answer[criterion.name]
        if score < criterion.at_least:
            message = (
                f"{criterion.name} {score} of {criterion.largest}, minimum {criterion.at_least}. "
                f"{answer[column.reason_name]}"
            )
            return FailedCheck("judged", message)
    return None


def _checked_text(column: Written, name: str, answer: Mapping[str, Any]) -> str:
    if name:
        return to_text(answer.get(name))
    return "\n".join(free_texts(column, answer))


def free_texts(column: Written, answer: Mapping[str, Any]) -> list[str]:
    """Return the free texts of a column's answer: no labels, numbers or enums."""
    return schemas.free_texts(column.answer_schema, dict(answer))


def free_texts_of(recipe: Recipe, output: Any) -> list[str]:
    """Return the free texts of a finished row, of the columns that are kept."""
    if not isinstance(output, dict):
        return []
    return [
        text
        for column in recipe.text_columns
        for text in free_texts(column, {name: output.get(name) for name in column.names})
    ]


def fingerprint(texts: list[str]) -> str | None:
    """Return a key that equal texts share; None without free text.

    A row of labels and numbers alone may well come twice.
    """
    return texts_fingerprint(texts) if texts else None


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
