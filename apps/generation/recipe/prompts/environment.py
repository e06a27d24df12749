"""The environment that compiles and runs templates (pure).

Jinja's immutable sandbox is the second wall behind `syntax`, which refuses all that could leave the
sandbox or keep it busy.
"""

import operator
from functools import lru_cache
from typing import Any, cast

from jinja2 import StrictUndefined, Template, nodes
from jinja2.environment import TemplateExpression
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.budget import field_of, to_text
from apps.generation.recipe.prompts.filters import BUDGET_FILTERS, FILTERS
from apps.generation.recipe.prompts.syntax import TESTS, parse_expression, parse_template

MAX_NUMBER = 10**15
LOOP_FIELDS = ("index", "first", "last")
# Of two numbers; Jinja asks for each at run time, so it folds none of them while it compiles.
ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({*ARITHMETIC, "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        for value in (left, right):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise RecipeError.one(f"“{operator}” works on numbers, not on {_quoted(value)}.")
            if abs(value) > MAX_NUMBER:
                raise RecipeError.one(f"The number {value:g} is too large.")
        if operator not in ARITHMETIC:
            raise RecipeError.one(f"“{operator}” cannot be used.")
        if right == 0 and operator in {"/", "//", "%"}:
            raise RecipeError.one("Division by zero.")
        return ARITHMETIC[operator](left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext):
            return getattr(obj, attribute) if attribute in LOOP_FIELDS else None
        return field_of(obj, attribute)


def _quoted(value: Any) -> str:
    return f"“{to_text(value)[:40]}”" if value not in (None, "") else "nothing"


def _new_environment() -> _Environment:
    environment = _Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False, finalize=to_text
    )
    environment.globals.clear()
    environment.filters = {**FILTERS, **BUDGET_FILTERS}
    environment.tests = {name: environment.tests[name] for name in TESTS}
    return environment


_environment = _new_environment()


@lru_cache(maxsize=256)
def compiled_template(source: str) -> Template:
    """
    Raises:
        RecipeError: it is not allowed.
    """
    tree = cast(nodes.Template, _with_budget(parse_template(source)))
    return _environment.from_string(tree)


@lru_cache(maxsize=256)
def compiled_expression(source: str) -> TemplateExpression:
    """
    Raises:
        RecipeError: it is not allowed.
    """
    tree = cast(nodes.Expr, _with_budget(parse_expression(source)))
    result = nodes.Assign(nodes.Name("result", "store"), tree, lineno=1)
    body = nodes.Template([result], lineno=1)
    body.set_environment(_environment)
    return TemplateExpression(_environment.from_string(body), undefined_to_none=False)


# --- The budget in the tree ---------------------------------------------------


def _with_budget(tree: nodes.Node) -> nodes.Node:
    found: nodes.Node = _BudgetTransformer().visit(tree)
    return found.set_environment(_environment)


class _BudgetTransformer(NodeTransformer):
    """Inserts the filters that count the characters of joined texts and the turns of loops."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "(concat)", [])

    def visit_For(self, node: nodes.For) -> nodes.Node:
        cost = sum(1 for part in node.body for _ in part.find_all(nodes.Node)) + 1
        self.generic_visit(node)
        arguments: list[nodes.Expr] = [nodes.Const(cost, lineno=node.lineno)]
        node.iter = _filtered(cast(nodes.Expr, node.iter), "(each)", arguments)
        return node


def _filtered(value: nodes.Expr, name: str, arguments: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(value, name, arguments, [], None, None, lineno=value.lineno)
