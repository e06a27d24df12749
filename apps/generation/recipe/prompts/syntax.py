"""Parses templates and expressions, and refuses what they may not contain (pure).

A small, finite part of Jinja2: columns, filters and conditions; no calls, no attributes but the
fields of objects; loops over the lists of the row; arithmetic in expressions alone.
"""

from collections.abc import Callable
from typing import cast

from jinja2 import TemplateSyntaxError, nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.filters import FILTERS
from apps.generation.recipe.prompts.names import check_name

MAX_TEMPLATE = 50_000  # characters
MAX_EXPRESSION = 2_000  # characters
MAX_DEPTH = 100
MAX_PARTS = 6_000  # names, texts, signs: compiling one takes 25 microseconds and 7 kB
MAX_LOOPS = 2  # one within the other
TESTS = ("eq", "ne", "equalto", "in")

ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If),
    *(nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Concat),
    *(nodes.Filter, nodes.Test, nodes.List, nodes.Tuple),
    *(nodes.For, nodes.Getattr),
)
ARITHMETIC_NODES = (
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod),
    *(nodes.Neg, nodes.Pos),
)
REFUSED: dict[type[nodes.Node], str] = {
    nodes.Call: "calls",
    nodes.Getitem: "brackets",
    nodes.BinExpr: "arithmetic",
    nodes.UnaryExpr: "arithmetic",
    nodes.Assign: "assignments",
    nodes.AssignBlock: "assignments",
    nodes.Macro: "macros",
    nodes.Include: "includes",
    nodes.Import: "imports",
    nodes.FromImport: "imports",
    nodes.Extends: "inheritance",
    nodes.Block: "blocks",
}

_grammar = ImmutableSandboxedEnvironment()  # for parsing; `environment` renders


def parse_template(source: str) -> nodes.Template:
    """
    Raises:
        RecipeError: with the line.
    """
    _check_length(source, MAX_TEMPLATE)
    tree = cast(nodes.Template, _parsed(lambda: _grammar.parse(source), "template"))
    _check_nodes(tree)
    _check_loops(tree)
    return tree


def parse_expression(source: str) -> nodes.Node:
    """
    Raises:
        RecipeError: with the line.
    """
    if not source.strip():
        raise RecipeError.one("The expression is empty.")
    _check_length(source, MAX_EXPRESSION)
    tree = _parsed(lambda: _expression_tree(source), "expression")
    _check_nodes(tree, arithmetic=True)
    return tree


def _expression_tree(source: str) -> nodes.Node:
    parser = Parser(_grammar, source, state="variable")
    tree = parser.parse_expression()
    if not parser.stream.eos:
        raise TemplateSyntaxError("unexpected text after the expression", 1)
    return tree


def _check_length(source: str, longest: int) -> None:
    if len(source) > longest:
        raise RecipeError.one(f"At most {longest:,} characters; these are {len(source):,}.")


def _parsed(parse: Callable[[], nodes.Node], thing: str) -> nodes.Node:
    try:
        return parse()
    except TemplateSyntaxError as error:
        raise RecipeError.one(f"Line {error.lineno}: {_sentence(error.message or '')}") from error
    except RecursionError as error:
        raise RecipeError.one(f"The {thing} is nested too deeply.") from error
    except ValueError as error:  # Python reads no whole number of more than 4,300 digits
        raise RecipeError.one("A number in it has too many digits.") from error


def _sentence(message: str) -> str:
    message = message.strip().rstrip(".")
    return f"{message[:1].lower()}{message[1:]}."


# --- The parts that may stand in it -------------------------------------------


def _check_nodes(tree: nodes.Node, *, arithmetic: bool = False) -> None:
    level: list[nodes.Node] = [tree]
    parts = 0
    for _ in range(MAX_DEPTH):
        parts += len(level)
        if parts > MAX_PARTS:
            raise RecipeError.one(f"The template has more than {MAX_PARTS:,} parts: shorten it.")
        for node in level:
            if not (arithmetic and isinstance(node, ARITHMETIC_NODES)):
                _check_node(node)
        level = [child for node in level for child in node.iter_child_nodes()]
        if not level:
            return
    raise RecipeError.one("The template is nested too deeply.")


def _check_node(node: nodes.Node) -> None:
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        known = ", ".join(FILTERS)
        raise RecipeError.one(f"Line {node.lineno}: unknown filter “{node.name}”. Use {known}.")
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        raise RecipeError.one(f"Line {node.lineno}: unknown test “{node.name}”.")
    if isinstance(node, nodes.Name) and node.name == "self":  # the one name that Jinja adds
        raise RecipeError.one(f"Line {node.lineno}: no column “self”.")
    kinds = (REFUSED[kind] for kind in type(node).__mro__ if kind in REFUSED)
    refused = next(kinds, "this part of Jinja")
    if isinstance(node, nodes.Getattr) and not _is_field(node):
        refused = "attributes"
    elif isinstance(node, ALLOWED):
        return
    raise RecipeError.one(
        f"Line {node.lineno}: prompts do not support {refused}. Use {{{{ }}}} for columns, "
        "{% if %} … {% endif %} for conditions and {% for item in list %} … {% endfor %} for "
        "repetitions."
    )


def _is_field(node: nodes.Getattr) -> bool:
    """True for a field of a column's value, as in `address.city`."""
    return not node.attr.startswith("_") and isinstance(node.node, nodes.Name | nodes.Getattr)


def _check_loops(tree: nodes.Node, depth: int = 0) -> None:
    if isinstance(tree, nodes.For):
        depth += 1
        if depth > MAX_LOOPS:
            raise RecipeError.one(f"Line {tree.lineno}: at most {MAX_LOOPS} loops in each other.")
        if tree.recursive or not isinstance(tree.target, nodes.Name):
            raise RecipeError.one(f"Line {tree.lineno}: write a loop as {{% for item in list %}}.")
        check_name(tree.target.name)
    for child in tree.iter_child_nodes():
        _check_loops(child, depth)
