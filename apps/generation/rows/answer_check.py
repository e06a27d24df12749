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
    """`code` and `reason` are empty when the row is good."""

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
    """Check an answer and read its fields. Nothing is repaired. JSON in a fenced block is read
    from the block.

    Args:
        only_thought: the sentence of an answer that is nothing but a thought.
        loosely: a person wants it: it needs what is required and the right types, no more.
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
    """Return the first reason against a well-formed answer: a low score or a failed check."""
    if isinstance(column, Judge):
        for criterion in column.criteria:
            if answer[criterion.name] < criterion.at_least:
                return FailedCheck(
                    "judged",
                    f"{criterion.name} {answer[criterion.name]} of {criterion.largest}, minimum "
                    f"{criterion.at_least}. {answer[column.reason_name]}",
                )
    for check in column.checks:
        text = _checked_text(column, check.field, answer)
        if problem := check.problem(text, {**values, **answer}):
            name = check.field or (column.name if isinstance(column, Text) else "")
            return FailedCheck(f"check_{check.kind}", f"{f'{name}: ' if name else ''}{problem}")
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
        for column in recipe.written
        if column.keep and not isinstance(column, Judge)
        for text in free_texts(column, {name: output.get(name) for name in column.names})
    ]


def fingerprint(texts: list[str]) -> str | None:
    """The same for texts a reader would call the same; None where the model wrote no free text.

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
    """The value of a JSON text, if it can be kept.

    Raises:
        ValueError: it is not JSON, nested too deeply, or has a number that is none (NaN) or not
            finite (1e999).
    """

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON number")

    try:
        return _whole(json.loads(text, parse_constant=refuse))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _whole(value: Any, depth: int = 0) -> Any:
    """The value without half surrogate pairs, which no file and no database takes."""
    if depth > MAX_JSON_DEPTH:
        raise ValueError("it is nested too deeply")
    match value:
        case float() if not math.isfinite(value):
            raise ValueError("a number is too large")
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_whole(item, depth + 1) for item in value]
        case dict():
            return {_whole(name): _whole(item, depth + 1) for name, item in value.items()}
    return value
