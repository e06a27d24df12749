"""One column in the API's words: `name`, `kind`, and what the kind needs (pure)."""

from collections.abc import Callable
from typing import Any

from apps.generation import column_parts as parts
from apps.generation import columns_drawn, columns_written, prompts
from apps.generation.column_parts import Data, Names
from apps.generation.columns import Column
from apps.generation.problems import Problem, RecipeError

COMMON = {"name", "kind", "condition", "keep"}


def read(data: Data, names: Names) -> Column:
    """
    Raises:
        RecipeError: what is wrong, with its place inside the column.
    """
    name = data.get("name")
    if not isinstance(name, str):
        raise RecipeError.of("A column has a name, a kind and what the kind needs.")
    prompts.check_name(name)
    kind = data.get("kind", "category")
    if kind not in KINDS:
        message = f"There is no kind “{kind}” of column: use one of {', '.join(KINDS)}."
        raise RecipeError([Problem(("kind",), message)])
    reader, known = KINDS[kind]
    for unknown in data.keys() - COMMON - known:
        raise RecipeError([Problem((str(unknown),), f"A column of kind {kind} has no such part.")])
    condition = parts.text(data, "condition").strip()
    if condition:
        parts.at("condition", prompts.check_expression, condition, names)
    keep = data.get("keep", True)
    if not isinstance(keep, bool):
        raise RecipeError([Problem(("keep",), "Must be true or false.")])
    source = {key: value for key, value in data.items() if value not in ("", None)}
    common = {"name": name, "source": source, "condition": condition, "keep": keep}
    return reader(data, names, common)


Reader = Callable[[Data, Names, Any], Column]
_WRITTEN_PARTS = {"prompt", "params", "checks", "candidates"}

KINDS: dict[str, tuple[Reader, set[str]]] = {
    "category": (columns_drawn.category, {"values", "weights", "depends_on"}),
    "persona": (columns_drawn.persona, {"values", "about"}),
    "number": (columns_drawn.number, {"min", "max", "decimals", "mean", "deviation"}),
    "date": (columns_drawn.date, {"from", "to", "time"}),
    "uuid": (columns_drawn.uuid, set()),
    "seed": (
        columns_drawn.seed,
        {
            *("dataset", "rows", "text", "format", "fields", "stored", "order", "count"),
            *("match", "match_field", "template"),
        },
    ),
    "expression": (columns_drawn.expression, {"expression"}),
    "text": (columns_written.text, _WRITTEN_PARTS),
    "structured": (columns_written.structured, _WRITTEN_PARTS | {"schema"}),
    "judge": (columns_written.judge, (_WRITTEN_PARTS - {"checks", "candidates"}) | {"criteria"}),
}
