"""The filters of templates, each within the budget (pure)."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jinja2 import pass_context
from jinja2.filters import do_title
from jinja2.runtime import Context, Undefined

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.budget import budget, to_text

MAX_TRIMMED = 1_000  # characters for `trim` to remove: it searches for each


def _text_filter(change: Callable[[str], str]) -> Callable[[Context, Any], str]:
    @pass_context  # so that Jinja never computes it while it compiles
    def changed(context: Context, value: Any) -> str:
        text = to_text(value)
        budget.get().spend_characters(len(text))
        return change(text)

    return changed


@pass_context
def _trim(context: Context, value: Any, chars: Any = None) -> str:
    """Removes these characters at both ends; default: white space."""
    text = to_text(value)
    ends = None if chars is None else to_text(chars)
    budget.get().spend_characters(len(text) + len(ends or ""))
    if ends is not None and len(ends) > MAX_TRIMMED:
        raise RecipeError.one(f"“trim” removes up to {MAX_TRIMMED:,} characters.")
    return text.strip(ends)


@pass_context
def _join(context: Context, value: Any, between: Any = "") -> str:
    """Joins the items of a list to one text."""
    items = [to_text(item) for item in _items(value, "join")]
    gap = to_text(between)
    budget.get().spend_steps(len(items))
    budget.get().spend_characters(sum(map(len, items)) + len(gap) * max(0, len(items) - 1))
    return gap.join(items)


@pass_context
def _concat(context: Context, parts: list[Any]) -> str:
    """The operator `~`. Its size is known before the text is built."""
    texts = [to_text(part) for part in parts]
    budget.get().spend_characters(sum(map(len, texts)))
    return "".join(texts)


@pass_context
def _default(context: Context, value: Any, otherwise: Any = "", also_false: bool = False) -> Any:
    """Replaces an empty column or field."""
    empty = value is None or value == "" or isinstance(value, Undefined)
    return otherwise if empty or (also_false and not value) else value


@pass_context
def _tojson(context: Context, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    budget.get().spend_characters(len(text))
    return text


@pass_context
def _length(context: Context, value: Any) -> int:
    if value is None:
        return 0
    if not isinstance(value, str | list | tuple | Mapping):
        raise RecipeError.one(f"“{to_text(value)[:40]}” has no length.")
    return len(value)


@pass_context
def _each(context: Context, value: Any, cost: int) -> Iterator[Any]:
    """The turns of a loop."""
    for item in _items(value, "for"):
        budget.get().spend_steps(cost)
        yield item


def _items(value: Any, construct: str) -> list[Any] | tuple[Any, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise RecipeError.one(f"“{construct}” needs a list, not “{to_text(value)[:40]}”.")
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
# Inserted by `environment`; no template can name them.
BUDGET_FILTERS: dict[str, Callable[..., Any]] = {"(concat)": _concat, "(each)": _each}
