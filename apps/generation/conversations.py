"""What was said for a row, and rows as conversations to train on."""

from dataclasses import dataclass

from apps.batch.models import Item
from apps.generation import schemas
from apps.generation.columns import Judge
from apps.generation.plan import Recipe
from apps.generation.problems import RecipeError
from apps.generation.recipe import dumps
from apps.generation.rows import parts_of
from apps.generation.spec import Spec


@dataclass(frozen=True, slots=True)
class Sides:
    """The fields that are the two sides of a conversation to train on."""

    user: str
    assistant: str

    @classmethod
    def of(cls, recipe: Recipe) -> "Sides | None":
        """The first two texts that the model wrote; None where there is but one."""
        found = [
            name
            for column in recipe.written
            if column.keep and not isinstance(column, Judge)
            for name in column.names
            if schemas.is_free_text(column.schema, name)
        ]
        return cls(found[0], found[1]) if len(found) > 1 else None

    @classmethod
    def asked_for(cls, recipe: Recipe, user: str | None, assistant: str | None) -> "Sides | None":
        """As somebody chose: empty means what was asked and answered; None: the likeliest fields.

        Raises:
            RecipeError: there is no such field, or only one side was chosen.
        """
        if user is None and assistant is None:
            return cls.of(recipe)
        if not user and not assistant:
            return None
        if not user or not assistant:
            raise RecipeError.of("Choose a field for each side, or what was asked and answered.")
        for name in (user, assistant):
            if name not in recipe.field_names:
                known = ", ".join(recipe.field_names)
                raise RecipeError.of(f"There is no field “{name}”. There are: {known}.")
        return cls(user, assistant)


def messages_of(spec: Spec, item: Item) -> list[dict[str, str]]:
    """What was sent for this row; nothing for a row that was never asked."""
    asked = parts_of(spec.recipe, item.prompt)
    if not asked:
        return []
    replies = parts_of(spec.recipe, item.raw)
    messages = [{"role": "system", "content": spec.system}] if spec.system else []
    for at, question in enumerate(asked):
        messages.append({"role": "user", "content": question})
        if at < len(asked) - 1:
            messages.append({"role": "assistant", "content": replies[at]})
    return messages


def last_reply(spec: Spec, item: Item) -> str:
    """What the model wrote last, to the letter."""
    replies = parts_of(spec.recipe, item.raw)
    return replies[-1] if replies else ""


def conversation(spec: Spec, item: Item) -> list[dict[str, str]]:
    """What was asked and answered, without what a judge was asked about it.

    An edited row ends with what the person made of it.
    """
    messages = messages_of(spec, item)
    answer = last_reply(spec, item)
    written = list(spec.recipe.written)
    # Each column is a question and its answer, where no condition left one out.
    if len(messages) == bool(spec.system) + 2 * len(written) - 1:
        while len(written) > 1 and isinstance(written[-1], Judge):
            written.pop()
            del messages[-1]
            answer = messages.pop()["content"]
    if isinstance(item.edited, dict):
        edited = {name: item.edited[name] for name in written[-1].names if name in item.edited}
        plain = written[-1].schema is None
        answer = str(next(iter(edited.values()), "")) if plain else dumps(edited)
    return [*messages, {"role": "assistant", "content": answer}]
