"""Which schemas are taken, how a model is told, what an answer is held against."""

from typing import Any

import pytest

from apps.generation.recipe.columns.schemas import (
    checked,
    closed,
    described,
)
from apps.generation.recipe.problems import RecipeError

LABELLED: dict[str, Any] = {
    "type": "object",
    "required": ["text", "label"],
    "properties": {
        "text": {"type": "string", "maxLength": 300},
        "label": {"type": "string", "enum": ["positive", "negative"]},
    },
}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def test_the_wording_the_demo_model_was_trained_on() -> None:
    assert described(checked(LABELLED)) == (
        "Answer with one JSON object with these fields:\n"
        "- text: string, at most 300 characters\n"
        '- label: one of "positive", "negative"'
    )


@pytest.mark.parametrize(
    ("inner", "line"),
    [
        ({"type": "string"}, "- f: string"),
        ({"type": "integer"}, "- f: integer"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "- f: integer, from 1 to 5"),
        ({"type": "number", "minimum": 0}, "- f: number, at least 0"),
        ({"type": "boolean"}, "- f: true or false"),
        ({"type": "array", "items": {"type": "string"}}, "- f: list of strings"),
        (
            {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
            "- f: list of integers, at most 3 items",
        ),
        ({"enum": ["a", "b"]}, '- f: one of "a", "b"'),
        ({"type": "integer", "enum": [1, 2]}, "- f: one of 1, 2"),
        ({"type": "string", "description": "the title"}, "- f: string (the title)"),
        (
            {"type": "array", "items": {"enum": ["x", "y"]}},
            '- f: list of strings: each one of "x", "y"',
        ),
        (
            of(street={"type": "string"}, number={"type": "integer"}),
            "- f: object, with these fields:\n  - street: string\n  - number: integer",
        ),
        (
            {"type": "array", "items": of(name={"type": "string"})},
            "- f: list of objects, with these fields:\n  - name: string",
        ),
    ],
)
def test_kinds(inner: dict[str, Any], line: str) -> None:
    assert described(checked(of(f=inner))).split("\n", 1)[1] == line


def test_optional_fields_are_called_so() -> None:
    schema = of(a={"type": "string"}) | {"required": []}
    assert "- a: string, optional" in described(checked(schema))


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("text", "Start the schema with"),
        ({"type": "array"}, "Start the schema with"),
        ({"type": "object"}, "no field"),
        ({"type": "object", "properties": {}}, "no field"),
        (of(a={"type": "strin"}), "“a” needs one type"),
        (of(a={"type": ["string", "null"]}), "“a” needs one type"),
        (of(a={"$ref": "http://127.0.0.1/x"}), "“a” needs one type"),
        (of(a={"type": "string", "$ref": "#"}), "“$ref” is not allowed"),
        (of(a={"type": "string", "pattern": "(a+)+$"}), "“pattern” is not allowed"),
        (of(a={"type": "string", "format": "email"}), "“format” is not allowed"),
        (of(a={"type": "string", "maxLength": 10**9}), "at most 1,900"),
        (of(a={"type": "string", "maxLength": -1}), "minimum"),
        (of(a={"type": "string", "enum": []}), "at least one value"),
        (of(a={"type": "array"}), "with “items”"),
        (of(a={"type": "object"}), "without fields"),
        (of(a={"type": "string"}) | {"required": ["b"]}, "“b” is required"),
        (of(**{"": {"type": "string"}}), "no name"),
        (of(a=of(b=of(c=of(d=of(e={"type": "string"}))))), "nested too deeply"),
        (of(**{f"f{n}": {"type": "string"} for n in range(101)}), "101 fields"),
    ],
)
def test_parse_schema_refuses_bad_schemas(schema: Any, sentence: str) -> None:
    with pytest.raises(RecipeError) as caught:
        checked(schema)
    assert sentence in str(caught.value)


def test_closed_leaves_no_room_for_other_fields() -> None:
    sent = closed(
        of(a=of(b={"type": "string"}), c={"type": "array", "items": of(d={"type": "string"})})
    )
    assert sent["additionalProperties"] is False
    assert sent["properties"]["a"]["additionalProperties"] is False
    assert sent["properties"]["c"]["items"]["additionalProperties"] is False
