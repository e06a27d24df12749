"""One column in the API's words: `name`, `kind`, and what the kind needs (pure)."""

from collections.abc import Callable
from typing import Any

from apps.generation.recipe.columns import parse_fields as parts
from apps.generation.recipe.columns import sampled, written
from apps.generation.recipe.columns.columns import Column
from apps.generation.recipe.columns.parse_fields import Data, Names
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts import templates

COMMON = {"name", "kind", "condition", "keep"}


def read(data: Data, names: Names) -> Column:
    """
    Raises:
        RecipeError: what is wrong, with its place inside the column.
    """
    name = data.get("name")
    if not isinstance(name, str):
        raise RecipeError.of("A column needs a name, a type and the settings of that type.")
    templates.check_name(name)
    kind = data.get("kind", "category")
    if kind not in KINDS:
        message = f"Unknown column type “{kind}”. Use {', '.join(KINDS)}."
        raise RecipeError([Problem(("kind",), message)])
    reader, known = KINDS[kind]
    for unknown in data.keys() - COMMON - known:
        raise RecipeError([Problem((str(unknown),), f"Unknown key for a {kind} column.")])
    condition = parts.text(data, "condition").strip()
    if condition:
        parts.at("condition", templates.check_expression, condition, names)
    keep = data.get("keep", True)
    if not isinstance(keep, bool):
        raise RecipeError([Problem(("keep",), "Must be true or false.")])
    source = {key: value for key, value in data.items() if value not in ("", None)}
    common = {"name": name, "source": source, "condition": condition, "keep": keep}
    return reader(data, names, common)


Reader = Callable[[Data, Names, Any], Column]
_WRITTEN_PARTS = {"prompt", "params", "checks", "candidates"}

KINDS: dict[str, tuple[Reader, set[str]]] = {
    "category": (sampled.category, {"values", "weights", "depends_on"}),
    "persona": (sampled.persona, {"values", "about"}),
    "number": (sampled.number, {"min", "max", "decimals", "mean", "deviation"}),
    "date": (sampled.date, {"from", "to", "time"}),
    "uuid": (sampled.uuid, set()),
    "seed": (
        sampled.seed,
        {
            *("dataset", "rows", "text", "format", "fields", "stored", "order", "count"),
            *("match", "match_field", "template"),
        },
    ),
    "expression": (sampled.expression, {"expression"}),
    "text": (written.text, _WRITTEN_PARTS),
    "structured": (written.structured, _WRITTEN_PARTS | {"schema"}),
    "judge": (written.judge, (_WRITTEN_PARTS - {"checks", "candidates"}) | {"criteria"}),
}
