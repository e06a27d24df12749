"""Messages of a row, and rows as conversations to train on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.batch.models import Item
from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.judge import Judge
from apps.generation.recipe.columns.written import Written
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import Recipe
from apps.generation.recipe.spec import Spec
from apps.generation.rows.row_texts import repeated_questions, split_texts, used_replies


@dataclass(frozen=True, slots=True)
class Sides:
    """Names of the fields with user message and answer of a conversation to train on."""

    user: str
    assistant: str

    @classmethod
    def of(cls, recipe: Recipe) -> "Sides | None":
        """Return the last two text fields of the model; None if there are fewer."""
        found = [
            name
            for column in recipe.text_columns
            for name in column.names
            if schemas.is_free_text(column.answer_schema, name)
        ]
        return cls(*found[-2:]) if len(found) > 1 else None

    @classmethod
    def asked_for(cls, recipe: Recipe, user: str | None, assistant: str | None) -> "Sides | None":
        """Check a choice of fields: empty for question and answer, None for the likely fields.

        Raises:
            RecipeError: there is no such field, or only one side was chosen.
        """
        if user is None and assistant is None:
            return cls.of(recipe)
        if not user and not assistant:
            return None
        if not user or not assistant:
            raise RecipeError.one("Choose a user message and an assistant message.")
        for name in (user, assistant):
            if name not in recipe.field_names:
                known = ", ".join(recipe.field_names)
                raise RecipeError.one(f"No field “{name}”. Available fields: {known}.")
        return cls(user, assistant)


def messages_of(spec: Spec, item: Item) -> list[dict[str, str]]:
    """Return the messages that were sent for this row; none for a row without a request."""
    asked = split_texts(spec.recipe, item.prompt)
    if not asked:
        return []
    replies = split_texts(spec.recipe, item.raw)
    messages = [{"role": "system", "content": spec.system}] if spec.system else []
    for at, question in enumerate(asked):
        messages.append({"role": "user", "content": question})
        if at < min(len(asked) - 1, len(replies)):
            messages.append({"role": "assistant", "content": replies[at]})
    return messages


def last_reply(spec: Spec, item: Item) -> str:
    """Return the exact last output of the model."""
    replies = split_texts(spec.recipe, item.raw)
    return replies[-1] if replies else ""


def conversation(spec: Spec, item: Item) -> list[dict[str, str]]:
    """Return questions and answers without those of a judge.

    An edited row ends with the edited fields.
    """
    recipe = spec.recipe
    asked = split_texts(recipe, item.prompt)
    repeated = repeated_questions(recipe, item.prompt)
    # Later questions continue from the answer to the repeated question.
    questions = [text for text, is_repeat in zip(asked, repeated, strict=True) if not is_repeat]
    replies = used_replies(recipe, item.prompt, item.raw)
    written = list(recipe.written)
    # Without conditions, each written column is one question and one answer.
    if len(questions) == len(written):
        while len(written) > 1 and isinstance(written[-1], Judge):
            written.pop()
        questions = questions[: len(written)]
    messages = [{"role": "system", "content": spec.system}] if spec.system else []
    answer = ""
    for question, reply in zip(questions, replies, strict=False):
        messages += [{"role": "assistant", "content": answer}] if answer else []
        messages.append({"role": "user", "content": question})
        answer = reply
    if isinstance(item.edited, dict):
        answer = _edited_answer(written[-1], item.edited)
    return [*messages, {"role": "assistant", "content": answer}]


def _edited_answer(column: Written, edited: Mapping[str, Any]) -> str:
    """Return the answer that the model would have given for the edited fields."""
    fields = {name: edited[name] for name in column.names if name in edited}
    if column.answer_schema is None:
        return str(next(iter(fields.values()), ""))
    return json.dumps(fields, ensure_ascii=False)
