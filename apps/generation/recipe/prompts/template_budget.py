"""What templates of prompts run: filters, loops and fields, each within a budget (pure).

A loop's body costs its size at each turn, a text its length. Whoever writes the template, a prompt
is made in a moment and in little memory, or refused.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from jinja2 import pass_context
from jinja2.filters import do_title
from jinja2.runtime import Context, Undefined

from apps.generation.recipe.problems import RecipeError

MAX_PROMPT = 200_000  # characters a template may come out as
MAX_MADE = 10 * MAX_PROMPT  # characters of all texts made on the way
MAX_TRIMMED = 1_000  # characters that `trim` may be told: each is looked for
MAX_STEPS = 100_000  # parts of the template that its loops go through, turn by turn


@dataclass
class Budget:
    """Of one prompt."""

    steps: int = MAX_STEPS
    characters: int = MAX_MADE

    def step(self, cost: int) -> None:
        self.steps -= cost
        if self.steps < 0:
            raise RecipeError.of(f"Its loops take more than {MAX_STEPS:,} steps: shorten the list.")

    def made(self, characters: int) -> None:
        self.characters -= characters
        if characters > MAX_PROMPT or self.characters < 0:
            raise RecipeError.of(f"A text in it comes out longer than {MAX_PROMPT:,} characters.")


budget: ContextVar[Budget] = ContextVar("budget")


def written(value: Any) -> str:
    """A value as a template prints it: nothing for what is not there, JSON for lists and objects.

    As a text of the row, too.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def field_of(value: Any, name: str) -> Any:
    """`value.name`: the field of an object; None where there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    if value is None:
        return None
    raise RecipeError.of(f"“{written(value)[:40]}” has no field “{name}”: it is not an object.")


def _text_filter(change: Callable[[str], str]) -> Callable[[Context, Any], str]:
    @pass_context  # never worked out while a template is compiled
    def changed(context: Context, value: Any) -> str:
        text = written(value)
        budget.get().made(len(text))
        return change(text)

    return changed


@pass_context
def _trim(context: Context, value: Any, chars: Any = None) -> str:
    """Without these characters at both ends; white space where none are said."""
    text = written(value)
    ends = None if chars is None else written(chars)
    budget.get().made(len(text) + len(ends or ""))
    if ends is not None and len(ends) > MAX_TRIMMED:
        raise RecipeError.of(f"“trim” takes at most {MAX_TRIMMED:,} characters to take away.")
    return text.strip(ends)


@pass_context
def _join(context: Context, value: Any, between: Any = "") -> str:
    """The items of a list as one text."""
    items = [written(item) for item in _items(value, "join")]
    gap = written(between)
    budget.get().step(len(items))
    budget.get().made(sum(map(len, items)) + len(gap) * max(0, len(items) - 1))
    return gap.join(items)


@pass_context
def _concat(context: Context, parts: list[Any]) -> str:
    """What `~` means. Its size is known before it is made."""
    texts = [written(part) for part in parts]
    budget.get().made(sum(map(len, texts)))
    return "".join(texts)


@pass_context
def _default(context: Context, value: Any, otherwise: Any = "", also_false: bool = False) -> Any:
    """Something else where a column or field is empty."""
    empty = value is None or value == "" or isinstance(value, Undefined)
    return otherwise if empty or (also_false and not value) else value


@pass_context
def _tojson(context: Context, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    budget.get().made(len(text))
    return text


@pass_context
def _length(context: Context, value: Any) -> int:
    if value is None:
        return 0
    if not isinstance(value, str | list | tuple | Mapping):
        raise RecipeError.of(f"“{written(value)[:40]}” has no length.")
    return len(value)


@pass_context
def _each(context: Context, value: Any, cost: int) -> Iterator[Any]:
    """The turns of a loop."""
    for item in _items(value, "for"):
        budget.get().step(cost)
        yield item


def _items(value: Any, what: str) -> list[Any] | tuple[Any, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise RecipeError.of(f"“{what}” needs a list, not “{written(value)[:40]}”.")
    return value


FILTERS: dict[str, Callable[..., Any]] = {
    "lower": _text_filter(str.lower),
    "upper": _text_filter(str.upper),
    "capitalize": _text_filter(str.capitalize),
    "title": _text_filter(do_title),
    "trim": _trim,
    "join": _join,
    "default": _default,
    "tojson": _tojson,
    "length": _length,
}
# Put in by `prompts`, never written by anybody.
OWN: dict[str, Callable[..., Any]] = {"(concat)": _concat, "(each)": _each}
