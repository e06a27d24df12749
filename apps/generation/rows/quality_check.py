"""Scores and checks that a well-formed answer has to pass (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.generation.recipe.columns.judge import Judge
from apps.generation.recipe.columns.written import Text, Written
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.rows.answer_check import free_texts


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
    return "\n".join(free_texts(column.answer_schema, dict(answer)))
