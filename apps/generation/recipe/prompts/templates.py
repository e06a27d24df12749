"""Prompt templates and expressions: a small, finite part of Jinja2 (pure).

Only the columns are known: no calls, no attributes but the fields of objects; loops go over the
lists of the row, within a budget (`prompt_steps`); arithmetic in expressions alone, and there of
numbers alone. A template can then neither reach the machine nor keep it busy, whatever stands in
it; Jinja's own immutable sandbox is the second wall behind that.
"""

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, cast

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.environment import TemplateExpression
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.template_budget import (
    FILTERS,
    MAX_PROMPT,
    OWN,
    Budget,
    budget,
    field_of,
)
from apps.generation.recipe.prompts.template_budget import written as written

MAX_TEMPLATE = 50_000  # characters
MAX_EXPRESSION = 2_000  # characters
MAX_NUMBER = 10**15
MAX_DEPTH = 100
MAX_PARTS = 6_000  # names, texts, signs: compiling one takes 25 microseconds and 7 kB
TOO_LONG_NUMBER = "A number in it has too many digits."
MAX_LOOPS = 2  # one within the other
OF_A_LOOP = ("index", "first", "last")
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
    *(nodes.For, nodes.Getattr),
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
                raise RecipeError.of(f"The number {value:g} is too large.")
        if operator not in ARITHMETIC:
            raise RecipeError.of(f"“{operator}” cannot be used.")
        if right == 0 and operator in {"/", "//", "%"}:
            raise RecipeError.of("Division by zero.")
        return ARITHMETIC[operator](left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext):
            return getattr(obj, attribute) if attribute in OF_A_LOOP else None
        return field_of(obj, attribute)


def _environment() -> _Environment:
    environment = _Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False, finalize=written
    )
    environment.globals.clear()
    environment.filters = {**FILTERS, **OWN}
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
    token = budget.set(Budget())
    try:
        value = _compiled_expression(source)(values)
    except RecipeError:
        raise
    except (TemplateError, RecursionError, TypeError, ValueError, ArithmeticError) as error:
        raise RecipeError.of(f"The expression could not be evaluated: {error}.") from error
    finally:
        budget.reset(token)
    if isinstance(value, str) and len(value) > MAX_PROMPT:
        raise RecipeError.of(
            f"The result of the expression is longer than {MAX_PROMPT:,} characters."
        )
    return list(value) if isinstance(value, tuple) else value


def _check_names(tree: nodes.Node, columns: Sequence[str] | None) -> None:
    if columns is None:
        return
    for name in _unknown_names(tree, frozenset(columns)):
        raise RecipeError.of(f"Line {name.lineno}: {_unknown(name.name, columns)}")


def names_in(source: str, *, expression: bool = False) -> list[str]:
    """The names a template or an expression reads, each as often as it does.

    Raises:
        RecipeError: it is not allowed.
    """
    tree = _parsed_expression(source) if expression else _parsed(source)
    found = [tree] if isinstance(tree, nodes.Name) else [*tree.find_all(nodes.Name)]
    return [name.name for name in found]


def _unknown_names(tree: nodes.Node, known: frozenset[str]) -> Iterator[nodes.Name]:
    """A loop gives its body two more names."""
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


def render(source: str, values: Mapping[str, Any]) -> str:
    """The prompt of one row, without white space around it.

    Raises:
        RecipeError: the template is not allowed, a column is missing, or it comes out too long.
    """
    parts: list[str] = []
    length = 0
    token = budget.set(Budget())
    try:
        for part in _compiled(source).generate(values):
            parts.append(part)
            length += len(part)
            if length > MAX_PROMPT:
                raise RecipeError.of(f"The prompt is longer than {MAX_PROMPT:,} characters.")
    except (TemplateError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, RecipeError):
            raise
        raise RecipeError.of(f"The prompt could not be built: {error}") from error
    finally:
        budget.reset(token)
    prompt = "".join(parts).strip()
    if not prompt:
        raise RecipeError.of("The prompt is empty for this row.")
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
    tree = cast(nodes.Template, _bounded(_parsed(source)))
    return _jinja.from_string(tree)


@lru_cache(maxsize=256)
def _compiled_expression(source: str) -> TemplateExpression:
    tree = cast(nodes.Expr, _bounded(_parsed_expression(source)))
    result = nodes.Assign(nodes.Name("result", "store"), tree, lineno=1)
    body = nodes.Template([result], lineno=1)
    body.set_environment(_jinja)
    return TemplateExpression(_jinja.from_string(body), undefined_to_none=False)


class _Bounds(NodeTransformer):
    """Puts what counts into a tree: how long joined texts are, how often loops turn."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "(concat)", [])

    def visit_For(self, node: nodes.For) -> nodes.Node:
        cost = sum(1 for part in node.body for _ in part.find_all(nodes.Node)) + 1
        self.generic_visit(node)
        node.iter = _filtered(
            cast(nodes.Expr, node.iter), "(each)", [nodes.Const(cost, lineno=node.lineno)]
        )
        return node


def _filtered(value: nodes.Expr, name: str, arguments: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(value, name, arguments, [], None, None, lineno=value.lineno)


def _bounded(tree: nodes.Node) -> nodes.Node:
    found: nodes.Node = _Bounds().visit(tree)
    return found.set_environment(_jinja)


def _parsed_expression(source: str) -> nodes.Node:
    if not source.strip():
        raise RecipeError.of("The expression is empty.")
    if len(source) > MAX_EXPRESSION:
        raise RecipeError.of(f"At most {MAX_EXPRESSION:,} characters; these are {len(source):,}.")
    try:
        parser = Parser(_jinja, source, state="variable")
        tree = parser.parse_expression()
        if not parser.stream.eos:
            raise TemplateSyntaxError("unexpected text after the expression", 1)
    except TemplateSyntaxError as error:
        raise RecipeError.of(f"Line {error.lineno}: {_sentence(error.message or '')}") from error
    except RecursionError as error:
        raise RecipeError.of("The expression is nested too deeply.") from error
    except ValueError as error:  # Python reads no whole number of more than 4,300 digits
        raise RecipeError.of(TOO_LONG_NUMBER) from error
    _walk(tree, arithmetic=True)
    return tree


def _check_loops(tree: nodes.Node, around: int = 0) -> None:
    if isinstance(tree, nodes.For):
        around += 1
        if around > MAX_LOOPS:
            raise RecipeError.of(f"Line {tree.lineno}: at most {MAX_LOOPS} loops in each other.")
        if tree.recursive or not isinstance(tree.target, nodes.Name):
            raise RecipeError.of(f"Line {tree.lineno}: write a loop as {{% for item in list %}}.")
        check_name(tree.target.name)
    for child in tree.iter_child_nodes():
        _check_loops(child, around)


def _parsed(source: str) -> nodes.Template:
    if len(source) > MAX_TEMPLATE:
        raise RecipeError.of(f"At most {MAX_TEMPLATE:,} characters; these are {len(source):,}.")
    try:
        tree = _jinja.parse(source)
    except TemplateSyntaxError as error:
        raise RecipeError.of(f"Line {error.lineno}: {_sentence(error.message or '')}") from error
    except RecursionError as error:
        raise RecipeError.of("The template is nested too deeply.") from error
    except ValueError as error:
        raise RecipeError.of(TOO_LONG_NUMBER) from error
    _walk(tree)
    _check_loops(tree)
    return tree


def _walk(tree: nodes.Node, *, arithmetic: bool = False) -> None:
    level: list[nodes.Node] = [tree]
    parts = 0
    for _ in range(MAX_DEPTH):
        parts += len(level)
        if parts > MAX_PARTS:
            raise RecipeError.of(f"The template has more than {MAX_PARTS:,} parts: shorten it.")
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
        raise RecipeError.of(f"Line {node.lineno}: unknown filter “{node.name}”. Use {known}.")
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        raise RecipeError.of(f"Line {node.lineno}: unknown test “{node.name}”.")
    if isinstance(node, nodes.Name) and node.name == "self":  # the one name Jinja adds by itself
        raise RecipeError.of(f"Line {node.lineno}: there is no column “self”.")
    what = REFUSED.get(type(node), "this part of Jinja")
    if isinstance(node, nodes.Getattr) and not _is_field(node):
        what = "attributes"
    elif isinstance(node, ALLOWED):
        return
    raise RecipeError.of(
        f"Line {node.lineno}: {what} is not supported in prompts. "
        "Put columns between {{ and }}, conditions between {% if %} and {% endif %}, and "
        "repetitions between {% for item in list %} and {% endfor %}."
    )


def _is_field(node: nodes.Getattr) -> bool:
    """Whether it names a field of a column's value, as in `address.city`."""
    return not node.attr.startswith("_") and isinstance(node.node, nodes.Name | nodes.Getattr)


def _unknown(name: str, columns: Sequence[str]) -> str:
    if not columns:
        return f"no column “{name}”. Add it above this column."
    close = get_close_matches(name, columns, n=1)
    hint = f" Did you mean “{close[0]}”?" if close else ""
    return f"no column “{name}”.{hint} Available columns: {', '.join(columns)}."


def _named(value: Any) -> str:
    return f"“{written(value)[:40]}”" if value not in (None, "") else "nothing"


def _sentence(message: str) -> str:
    message = message.strip().rstrip(".")
    return f"{message[:1].lower()}{message[1:]}."
