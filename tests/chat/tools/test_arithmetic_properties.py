"""Properties of the calculator: exact on integers, bounded on anything."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.chat.tools.arithmetic import MAX_LENGTH, BadExpression, calculate
from tests.cpu_time import bounded_cpu

SMALL = st.integers(-10_000, 10_000)
CHARACTERS = "0123456789+-*/%^().,e pisqrtlogfactorialmaxround_'[]"


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, int]:
    """An expression of integers with + - *, and its value."""
    if depth == 0 or draw(st.booleans()):
        number = draw(SMALL)
        return f"({number})", number
    left, left_value = draw(expressions(depth - 1))
    right, right_value = draw(expressions(depth - 1))
    operator = draw(st.sampled_from("+-*"))
    value = {"+": left_value + right_value, "-": left_value - right_value}.get(
        operator, left_value * right_value
    )
    return f"({left} {operator} {right})", value


@given(expressions())
def test_integers_are_exact(expression: tuple[str, int]) -> None:
    text, value = expression
    assert calculate(text) == str(value)


@given(SMALL, SMALL)
def test_division_is_that_of_python(left: int, right: int) -> None:
    if right == 0:
        with pytest.raises(BadExpression, match="Division by zero"):
            calculate(f"({left}) // ({right})")
        return
    assert calculate(f"({left}) // ({right})") == str(left // right)
    assert calculate(f"({left}) % ({right})") == str(left % right)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_a_number_is_itself(value: float) -> None:
    assert math.isclose(float(calculate(f"({value!r})")), value, rel_tol=1e-14, abs_tol=1e-300)


@given(st.text(alphabet=CHARACTERS, max_size=60) | st.text(max_size=60))
def test_any_text_gives_a_number_or_a_sentence_soon(text: str) -> None:
    with bounded_cpu():
        try:
            outcome = calculate(text)
        except BadExpression as error:
            outcome = str(error)
        assert outcome


@pytest.mark.parametrize("text", ["1" * (MAX_LENGTH + 1), "(" * 61 + "1" + ")" * 61])
def test_long_and_deep_expressions_are_refused(text: str) -> None:
    with pytest.raises(BadExpression, match="expression"):
        calculate(text)
