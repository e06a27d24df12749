"""Prompt templates and expressions: checked for a recipe, rendered for a row (pure).

The language is small and finite (`syntax`) and runs within a budget (`budget`): a template can
neither reach the machine nor keep it busy.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jinja2 import TemplateError, Undefined, nodes

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.budget import MAX_PROMPT, Budget, budget
from apps.generation.recipe.prompts.environment import compiled_expression, compiled_template
from apps.generation.recipe.prompts.names import unknown_column
from apps.generation.recipe.prompts.syntax import parse_expression, parse_template


def check(source: str, columns: Sequence[str] | None) -> None:
    """Checks that a template can be rendered for every row.

    Args:
        columns: the names it may use; None where an earlier mistake hides some.

    Raises:
        RecipeError: with the line, and the column that does not exist.
    """
    _check_names(parse_template(source), columns)


def check_expression(source: str, columns: Sequence[str] | None) -> None:
    """Checks that an expression, or a condition, can be evaluated; see `check`."""
    _check_names(parse_expression(source), columns)


def names_in(source: str, *, expression: bool = False) -> list[str]:
    """The names that a template or an expression reads, each as often as it does.

    Raises:
        RecipeError: it is not allowed.
    """
    tree = parse_expression(source) if expression else parse_template(source)
    found = [tree] if isinstance(tree, nodes.Name) else [*tree.find_all(nodes.Name)]
    return [name.name for name in found]


def render(source: str, values: Mapping[str, Any]) -> str:
    """The prompt of one row, without white space around it.

    Raises:
        RecipeError: the template is not allowed, a column is missing, or the prompt is too long.
    """
    parts: list[str] = []
    length = 0
    token = budget.set(Budget())
    try:
        for part in compiled_template(source).generate(values):
            parts.append(part)
            length += len(part)
            if length > MAX_PROMPT:
                raise RecipeError.one(f"The prompt is longer than {MAX_PROMPT:,} characters.")
    except RecipeError:
        raise
    except (TemplateError, RecursionError, TypeError, ValueError, ArithmeticError) as error:
        raise RecipeError.one(f"The prompt could not be built: {error}") from error
    finally:
        budget.reset(token)
    prompt = "".join(parts).strip()
    if not prompt:
        raise RecipeError.one("The prompt is empty for this row.")
    return prompt


def evaluate(source: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression: a text, a number, a list, true or false.

    Raises:
        RecipeError: it is not allowed, or has no value with these columns.
    """
    token = budget.set(Budget())
    try:
        value = compiled_expression(source)(values)
    except RecipeError:
        raise
    except (TemplateError, RecursionError, TypeError, ValueError, ArithmeticError) as error:
        raise RecipeError.one(f"The expression could not be evaluated: {error}.") from error
    finally:
        budget.reset(token)
    if isinstance(value, str) and len(value) > MAX_PROMPT:
        raise RecipeError.one(
            f"The result of the expression is longer than {MAX_PROMPT:,} characters."
        )
    if isinstance(value, tuple):
        value = list(value)
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, Undefined):
            raise RecipeError.one("The expression could not be evaluated: a column is missing.")
    return value


def _check_names(tree: nodes.Node, columns: Sequence[str] | None) -> None:
    if columns is None:
        return
    for name in _unknown_names(tree, frozenset(columns)):
        raise RecipeError.one(f"Line {name.lineno}: {unknown_column(name.name, columns)}")


def _unknown_names(tree: nodes.Node, known: frozenset[str]) -> Iterator[nodes.Name]:
    """Names of no column. A loop gives its body two more."""
    if isinstance(tree, nodes.Name):
        if tree.name not in known:
            yield tree
        return
    if not isinstance(tree, nodes.For):
        for child in tree.iter_child_nodes():
            yield from _unknown_names(child, known)
        return
    yield from _unknown_names(tree.iter, known)
    target = tree.target.name if isinstance(tree.target, nodes.Name) else ""
    inner = known | {target, "loop"}
    for child in [*([tree.test] if tree.test else []), *tree.body]:
        yield from _unknown_names(child, inner)
    for child in tree.else_:
        yield from _unknown_names(child, known)
