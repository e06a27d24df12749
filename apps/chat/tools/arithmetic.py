"""A calculator with bounded time and memory. Pure.

simpleeval walks the expression's syntax tree and only knows the functions given here. Operations
that could take time or memory out of proportion, powers and factorials, have limits.
"""

import math
import operator
from ast import Add, Div, FloorDiv, Mod, Mult, Pow, Sub, UAdd, USub
from collections.abc import Callable
from typing import Any

from simpleeval import InvalidExpression, SimpleEval

MAX_LENGTH = 500
MAX_DEPTH = 60
MAX_BITS = 4096
MAX_FACTORIAL = 400


class BadExpression(Exception):
    """The expression could not be evaluated. The message says why."""


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadExpression("Only numbers are allowed.")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise BadExpression("A number became too large.")
    return value


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that arguments and result are numbers of limited size."""

    def call(*values: Any) -> Any:
        return _number(function(*map(_number, values)))

    return call


def _power(base: Any, exponent: Any) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(exponent) * max(1, base.bit_length()) > MAX_BITS:
        raise BadExpression("A power became too large.")
    return base**exponent


def _factorial(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= MAX_FACTORIAL:
        raise BadExpression(f"factorial needs an integer from 0 to {MAX_FACTORIAL}.")
    return math.factorial(value)


def _round(value: Any, digits: Any = 0) -> Any:
    if not isinstance(digits, int) or abs(digits) > 300:
        raise BadExpression("round takes a whole number of digits.")
    return round(value, digits) if digits else round(value)


_OPERATORS: dict[Any, Callable[..., Any]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mult: operator.mul,
    Div: operator.truediv,
    FloorDiv: operator.floordiv,
    Mod: operator.mod,
    Pow: _power,
    UAdd: operator.pos,
    USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "cos": math.cos,
    "exp": math.exp,
    "factorial": _factorial,
    "floor": math.floor,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": _round,
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tan": math.tan,
}
FUNCTIONS = ", ".join(_FUNCTIONS)
_NAMES = {"pi": math.pi, "e": math.e}


def calculate(expression: str) -> str:
    """Return the value of an expression such as `2 * (3 + sqrt(16))`; `^` is a power too.

    Raises:
        BadExpression
    """
    if len(expression) > MAX_LENGTH:
        raise BadExpression(f"The expression is longer than {MAX_LENGTH} characters.")
    if expression.count("(") > MAX_DEPTH:
        raise BadExpression(f"The expression has more than {MAX_DEPTH} brackets.")
    evaluator = SimpleEval(
        operators={kind: _checked(function) for kind, function in _OPERATORS.items()},
        functions={name: _checked(function) for name, function in _FUNCTIONS.items()},
        names=dict(_NAMES),
    )
    try:
        value = _number(evaluator.eval(expression.replace("^", "**").strip()))
    except BadExpression:
        raise
    except ZeroDivisionError as error:
        raise BadExpression("Division by zero.") from error
    except (OverflowError, ValueError, TypeError) as error:
        raise BadExpression(f"The expression could not be evaluated: {error}.") from error
    except (InvalidExpression, SyntaxError, RecursionError, MemoryError) as error:
        raise BadExpression(
            f"Not a valid expression. Allowed: numbers, + - * / // % ** ( ), pi, e and {FUNCTIONS}."
        ) from error
    except Exception as error:  # the library may fail on trees that no person would write
        raise BadExpression("The expression could not be evaluated.") from error
    return _format(value)


def _format(value: int | float) -> str:
    if isinstance(value, float):
        # People expect 0.1 + 0.2 to be 0.3.
        value = float(f"{value:.15g}")
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)
