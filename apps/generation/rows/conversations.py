"""Messages of a row, and rows as conversations to train on."""

import json
from dataclasses import dataclass

from apps.batch.models import Item
from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.judge import Judge
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import Recipe
from apps.generation.recipe.spec import Spec
from apps.generation.rows.row_texts import repeated_questions, split_texts, used_replies


@dataclass(frozen=True, slots=True)
class Sides:
    """The fields that are the two sides of a conversation to train on."""

    user: str
    assistant: str

    @classmethod
    def of(cls, recipe: Recipe) -> "Sides | None":
        """The last two texts that the model wrote; None where there is but one."""
        found = [
            name
            for column in recipe.written
            if column.keep and not isinstance(column, Judge)
            for name in column.names
            if schemas.is_free_text(column.answer_schema, name)
        ]
        return cls(*found[-2:]) if len(found) > 1 else None

    @classmethod
    def asked_for(cls, recipe: Recipe, user: str | None, assistant: str | None) -> "Sides | None":
        """Read a choice of fields: empty means question and answer; None: the most likely fields.

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
    """Return questions and answers, without those of a judge.

    An edited row ends with what the person made of it.
    """
    recipe = spec.recipe
    asked = split_texts(recipe, item.prompt)
    second = repeated_questions(recipe, item.prompt)
    # An answer that was given a second time is the one that later questions went on from.
    questions = [text for text, again in zip(asked, second, strict=True) if not again]
    replies = used_replies(recipe, item.prompt, item.raw)
    written = list(recipe.written)
    # Each column is a question and its answer, where no condition left one out.
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
        edited = {name: item.edited[name] for name in written[-1].names if name in item.edited}
        plain = written[-1].answer_schema is None
        answer = (
            str(next(iter(edited.values()), ""))
            if plain
            else json.dumps(edited, ensure_ascii=False)
        )
    return [*messages, {"role": "assistant", "content": answer}]
