"""Prompt templates and expressions: a small, finite part of Jinja2 (pure).

Only the columns are known, and only what grows with the length of template and values is allowed:
no loops, no calls, no attributes; arithmetic in expressions alone, and there of numbers alone. A
template can then neither reach the machine nor keep it busy, whatever stands in it; Jinja's own
immutable sandbox is the second wall behind that.
"""

import json
import operator
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.environment import TemplateExpression
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from apps.generation.problems import RecipeError

MAX_TEMPLATE = 50_000  # characters
MAX_PROMPT = 200_000  # characters a template may come out as
MAX_EXPRESSION = 2_000  # characters
MAX_NUMBER = 10**15
MAX_DEPTH = 100
FILTERS = ("lower", "upper", "capitalize", "title", "trim")
TESTS = ("eq", "ne", "equalto", "in")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
# Jinja reads these as its own.
RESERVED = frozenset(
    {"true", "false", "none", "and", "or", "not", "in", "is", "if", "else", "elif", "self", "loop"}
)

ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If),
    *(nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Concat),
    *(nodes.Filter, nodes.Test, nodes.List, nodes.Tuple),
)
REFUSED: dict[type[nodes.Node], str] = {
    nodes.For: "loops",
    nodes.Call: "calls",
    nodes.Getattr: "attributes",
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


# Of two numbers; Jinja asks for each at run time, so it folds none of them while it compiles.
ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
ARITHMETIC_NODES = (
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod),
    *(nodes.Neg, nodes.Pos),
)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({*ARITHMETIC, "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        for value in (left, right):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise RecipeError.of(f"“{operator}” works on numbers, not on {_named(value)}.")
            if abs(value) > MAX_NUMBER:
                raise RecipeError.of(f"The number {value:g} is too large to reckon with.")
        if operator not in ARITHMETIC:
            raise RecipeError.of(f"“{operator}” cannot be used.")
        if right == 0 and operator in {"/", "//", "%"}:
            raise RecipeError.of("Division by zero.")
        return ARITHMETIC[operator](left, right)


def written(value: Any) -> str:
    """A value as a template prints it: nothing for what is not there, JSON for lists and objects.

    As a text of the row, too.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _environment() -> _Environment:
    environment = _Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False, finalize=written
    )
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in FILTERS}
    environment.tests = {name: environment.tests[name] for name in TESTS}
    return environment


_jinja = _environment()


def check(source: str, columns: Sequence[str] | None) -> None:
    """That the template can be rendered for every row.

    Args:
        columns: the names it may use; None where they are not known for another mistake.

    Raises:
        RecipeError: naming the line, and the column that is not there.
    """
    _check_names(_parsed(source), columns)


def check_expression(source: str, columns: Sequence[str] | None) -> None:
    """That an expression, or a condition, can be worked out; like `check`."""
    _check_names(_parsed_expression(source), columns)


def evaluate(source: str, values: Mapping[str, Any]) -> Any:
    """What an expression comes to: a text, a number, true or false.

    Raises:
        RecipeError: it is not allowed, or cannot be worked out with these values.
    """
    try:
        value = _compiled_expression(source)(values)
    except RecipeError:
        raise
    except (TemplateError, RecursionError, TypeError, ValueError, ArithmeticError) as error:
        raise RecipeError.of(f"The expression cannot be worked out: {error}.") from error
    if isinstance(value, str) and len(value) > MAX_PROMPT:
        raise RecipeError.of(f"The expression comes out longer than {MAX_PROMPT:,} characters.")
    return list(value) if isinstance(value, tuple) else value


def _check_names(tree: nodes.Node, columns: Sequence[str] | None) -> None:
    if columns is None:
        return
    names = [tree] if isinstance(tree, nodes.Name) else tree.find_all(nodes.Name)
    for name in names:
        if name.name not in columns:
            raise RecipeError.of(f"Line {name.lineno}: {_unknown(name.name, columns)}")


def render(source: str, values: Mapping[str, Any]) -> str:
    """The prompt of one row, without white space around it.

    Raises:
        RecipeError: the template is not allowed, a column is missing, or it comes out too long.
    """
    parts: list[str] = []
    length = 0
    try:
        for part in _compiled(source).generate(values):
            parts.append(part)
            length += len(part)
            if length > MAX_PROMPT:
                raise RecipeError.of(f"The prompt comes out longer than {MAX_PROMPT:,} characters.")
    except (TemplateError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, RecipeError):
            raise
        raise RecipeError.of(f"The prompt cannot be put together: {error}") from error
    prompt = "".join(parts).strip()
    if not prompt:
        raise RecipeError.of("The prompt comes out empty for this row.")
    return prompt


def check_name(name: str) -> None:
    """That a column's name can stand between {{ and }}.

    Raises:
        RecipeError: saying what a name looks like.
    """
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        raise RecipeError.of(
            f"“{name[:60]}” cannot be a column's name: use letters, digits and _, "
            "begin with a letter, and no word that templates keep for themselves."
        )


@lru_cache(maxsize=256)
def _compiled(source: str) -> Template:
    _parsed(source)
    return _jinja.from_string(source)


@lru_cache(maxsize=256)
def _compiled_expression(source: str) -> TemplateExpression:
    _parsed_expression(source)
    return _jinja.compile_expression(source, undefined_to_none=False)


def _parsed_expression(source: str) -> nodes.Node:
    if not source.strip():
        raise RecipeError.of("The expression is empty.")
    if len(source) > MAX_EXPRESSION:
        raise RecipeError.of(f"At most {MAX_EXPRESSION:,} characters; these are {len(source):,}.")
    try:
        parser = Parser(_jinja, source, state="variable")
        tree = parser.parse_expression()
        if not parser.stream.eos:
            raise TemplateSyntaxError("something is left over after the expression", 1)
    except TemplateSyntaxError as error:
        raise RecipeError.of(f"Line {error.lineno}: {_sentence(error.message or '')}") from error
    except RecursionError as error:
        raise RecipeError.of("The expression is nested too deeply.") from error
    _walk(tree, arithmetic=True)
    return tree


def _parsed(source: str) -> nodes.Template:
    if len(source) > MAX_TEMPLATE:
        raise RecipeError.of(f"At most {MAX_TEMPLATE:,} characters; these are {len(source):,}.")
    try:
        tree = _jinja.parse(source)
    except TemplateSyntaxError as error:
        raise RecipeError.of(f"Line {error.lineno}: {_sentence(error.message or '')}") from error
    except RecursionError as error:
        raise RecipeError.of("The template is nested too deeply.") from error
    _walk(tree)
    return tree


def _walk(tree: nodes.Node, *, arithmetic: bool = False) -> None:
    level: list[nodes.Node] = [tree]
    for _ in range(MAX_DEPTH):
        for node in level:
            if not (arithmetic and isinstance(node, ARITHMETIC_NODES)):
                _check_node(node)
        level = [child for node in level for child in node.iter_child_nodes()]
        if not level:
            return
    raise RecipeError.of("The template is nested too deeply.")


def _check_node(node: nodes.Node) -> None:
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        known = ", ".join(FILTERS)
        raise RecipeError.of(f"Line {node.lineno}: there is no filter “{node.name}”. Use {known}.")
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        raise RecipeError.of(f"Line {node.lineno}: there is no test “{node.name}”.")
    if isinstance(node, nodes.Name) and node.name == "self":  # the one name Jinja adds by itself
        raise RecipeError.of(f"Line {node.lineno}: there is no column “self”.")
    if isinstance(node, ALLOWED):
        return
    what = REFUSED.get(type(node), "this part of Jinja")
    raise RecipeError.of(
        f"Line {node.lineno}: {what} cannot be used in a prompt. "
        "Put columns between {{ and }}, and conditions between {% if %} and {% endif %}."
    )


def _unknown(name: str, columns: Sequence[str]) -> str:
    if not columns:
        return f"there is no column “{name}”. Add it before this one, with its values."
    close = get_close_matches(name, columns, n=1)
    hint = f" Did you mean “{close[0]}”?" if close else ""
    return f"there is no column “{name}”.{hint} The columns are: {', '.join(columns)}."


def _named(value: Any) -> str:
    return f"“{written(value)[:40]}”" if value not in (None, "") else "nothing"


def _sentence(message: str) -> str:
    message = message.strip().rstrip(".")
    return f"{message[:1].lower()}{message[1:]}."
