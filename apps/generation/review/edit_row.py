"""Edited fields of a row, checked against its recipe."""

from collections.abc import Mapping
from typing import Any

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import Item, ItemStatus
from apps.generation.exports.row_fields import is_complete
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.spec import Spec
from apps.generation.review.restore import own_fingerprint
from apps.generation.rows import answer_check


def edit_row(item: Item, fields: Mapping[str, str], spec: Spec) -> None:
    """A person's words for some fields of an accepted row; what the model wrote stays as it was.

    Numbers, lists and objects are given as JSON.

    Raises:
        WrongState: the row has no output.
        RecipeError: a field is not there, or no longer of its kind.
    """
    if not isinstance(item.output, dict):
        raise WrongState("This row has no fields to edit.")
    if not is_complete(spec, item):
        raise WrongState("Not all columns are written yet. Accept the row first, then edit it.")
    changed = dict(item.current_output) if isinstance(item.current_output, dict) else {}
    problems: list[Problem] = []
    for name, text in fields.items():
        if name not in item.output:
            problems.append(Problem((name,), f"No field “{name}”."))
            continue
        try:
            changed[name] = _parse_like(item.output[name], text, name)
        except RecipeError as error:
            problems.extend(error.problems)
    for column in spec.recipe.written:
        inner = {name: changed[name] for name in column.names if name in changed}
        empty = all(value is None for value in inner.values())
        if column.answer_schema is None or empty:
            continue
        for sentence in answer_check.errors(column.answer_schema, inner):
            message = f"The edit does not match the schema: {sentence}"
            problems.append(Problem((column.name,), message))
    if problems:
        raise RecipeError(problems)
    item.edited = None if changed == item.output else changed
    is_accepted = item.status == ItemStatus.ACCEPTED
    fingerprint = own_fingerprint(item, spec) if is_accepted else item.fingerprint
    batches.edit_row(item, item.edited, fingerprint)


def _parse_like(old: Any, text: str, name: str) -> Any:
    """The text as a value of the old one's kind."""
    text = text.replace("\r\n", "\n")
    if isinstance(old, str) or old is None:
        return text
    try:
        return answer_check.parse_json(text)
    except ValueError as error:
        message = f"“{name}” is not valid JSON: {error}."
        raise RecipeError([Problem((name,), message)]) from error
