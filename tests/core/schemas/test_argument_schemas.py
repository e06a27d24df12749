"""Schemas that other programs wrote: what is taken, and what checking with them may cost."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from apps.core.schemas import argument_validation
from apps.core.schemas.argument_schemas import schema_problem
from apps.core.schemas.argument_validation import Unchecked, argument_problems
from tests.cpu_time import bounded_cpu

OBJECT: dict[str, Any] = {"type": "object"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def doubling(levels: int) -> dict[str, Any]:
    """Each level refers twice to the next one."""
    steps = {
        f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(levels)
    }  # fmt: skip
    return {**OBJECT, "$defs": {**steps, f"s{levels}": OBJECT}, "$ref": "#/$defs/s0"}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"not": schema}
    return of(a=schema)


TREE = of(tree={"$ref": "#/$defs/node"}) | {
    "$defs": {"node": of(left={"$ref": "#/$defs/node"}, right={"$ref": "#/$defs/node"})}
}
HOSTILE: dict[str, tuple[dict[str, Any], Any]] = {
    "backtracking": (of(a={"pattern": "^(a+)+$"}), {"a": "a" * 5000 + "b"}),
    "backtracking names": (
        {**OBJECT, "patternProperties": {"^(a+)+$": {"type": "string"}}},
        {"a" * 5000 + "b": 1},
    ),
    "backtracking additions": (
        {**OBJECT, "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"a" * 5000 + "b": 1},
    ),
    "doubling": (doubling(60), {}),
    "doubling, unevaluated": (doubling(30) | {"unevaluatedProperties": False}, {"a": 1}),
    "many times many": (
        of(a={"items": {"anyOf": [{"const": n} for n in range(1000)]}}),
        {"a": [-1] * 10_000},
    ),
    "not unique": (of(a={"uniqueItems": True}), {"a": [[n] for n in range(20_000)]}),
    "itself": ({**OBJECT, "allOf": [{"$ref": "#"}, {"$ref": "#"}]}, {}),
}


@pytest.mark.parametrize(("schema", "arguments"), HOSTILE.values(), ids=HOSTILE)
def test_no_schema_takes_for_ever(schema: dict[str, Any], arguments: Any) -> None:
    with bounded_cpu():
        schema_problem(schema)
        with suppress(Unchecked):
            argument_problems(arguments, schema)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (doubling(60), "expands to more than 5,000 parts."),
        (nested(60), "is nested deeper than 40 levels."),
        (nested(3000), "is nested deeper than 40 levels."),
        ({**OBJECT, "description": "x" * 30_000}, "is larger than 20,000 bytes."),
        (of(a={"$ref": "http://inside/"}), "refers to another document."),
        ({**OBJECT, "required": "all"}, "is not valid"),
        ({"type": "string"}, "the arguments are not an object."),
        ("x", "the arguments are not an object."),
    ],
)
def test_schema_problem_names_what_is_wrong(schema: Any, said: str) -> None:
    assert said in schema_problem(schema)


@pytest.mark.parametrize("schema", [OBJECT, TREE, doubling(5), nested(20)])
def test_schema_problem_is_empty_for_good_schemas(schema: dict[str, Any]) -> None:
    assert schema_problem(schema) == ""


def test_a_tree_is_checked_to_its_leaves() -> None:
    assert argument_problems({"tree": {"left": {"right": {}}}}, TREE) == []
    assert argument_problems({"tree": {"left": {"right": 1}}}, TREE) == [
        "tree.left.right: 1 is not of type 'object'"
    ]


def test_patterns_hold() -> None:
    schema = of(code={"pattern": "^[A-Z]{3}$"}) | {
        "patternProperties": {"^x_": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert argument_problems({"code": "ABC", "x_a": 1}, schema) == []
    assert argument_problems({"code": "abc"}, schema) == ["code: 'abc' does not match '^[A-Z]{3}$'"]
    assert argument_problems({"x_a": "1"}, schema) == ["x_a: '1' is not of type 'integer'"]
    assert argument_problems({"y": 1}, schema) == [
        "arguments: Additional properties are not allowed ('y' was unexpected)"
    ]
    assert argument_problems({"code": "\ud800"}, schema)
    # RE2 knows no lookahead: that is left to the server.
    assert argument_problems({"a": "b"}, of(a={"pattern": "^(?=a)a"})) == []


NAMES = st.sampled_from("ab")
KINDS = st.sampled_from(["string", "integer", "object", "array", "boolean"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({"type": KINDS}, optional={"enum": st.lists(st.integers(0, 3))}),
    lambda inner: (
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=2)},
            optional={
                "required": st.lists(NAMES, unique=True),
                "additionalProperties": st.booleans() | inner,
            },
        )
        | st.fixed_dictionaries({"items": inner}, optional={"uniqueItems": st.booleans()})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    st.sampled_from([0, 1, "a", "", True, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=120, deadline=None)
@given(schema=SCHEMAS, value=VALUES)
def test_validation_agrees_with_jsonschema(schema: dict[str, Any], value: Any) -> None:
    whole = of(a=schema)
    fits = Draft202012Validator(whole).is_valid({"a": value})
    assert (argument_problems({"a": value}, whole) == []) == fits


def test_steps_are_counted_afresh_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argument_validation, "MAX_STEPS", 20)
    for _ in range(5):
        assert argument_problems({"a": 1}, of(a={"type": "integer"})) == []
