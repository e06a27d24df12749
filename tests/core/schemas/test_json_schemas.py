"""Schemas of answers: what is accepted, what each refusal says, and that no JSON breaks it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from apps.core.schemas import json_schemas
from apps.core.schemas.json_schemas import BadSchema, checked, closed, contradiction

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 0}},
    "required": ["city"],
}


def of(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def nested(levels: int) -> dict[str, Any]:
    schema = of(leaf={"type": "string"})
    for _ in range(levels - 2):
        schema = of(inner=schema)
    return schema


class TestChecked:
    def test_returns_an_equal_copy(self) -> None:
        found = checked(CITY)
        assert found == CITY
        assert found is not CITY

    @pytest.mark.parametrize(
        "field",
        [
            {"type": "string", "minLength": 1, "maxLength": 20},
            {"type": "string", "enum": ["a", "b"]},
            {"enum": ["a", "b"]},
            {"type": "integer", "minimum": 1, "maximum": 5},
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            {"type": "boolean"},
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
            {"type": "object", "properties": {"a": {"type": "number"}}},
            {"type": "string", "title": "T", "description": "D", "default": "x", "examples": ["y"]},
        ],
    )
    def test_accepts_what_every_grammar_enforces(self, field: dict[str, Any]) -> None:
        assert checked(of(a=field))["properties"]["a"] == field

    @pytest.mark.parametrize(
        ("schema", "sentence"),
        [
            (None, "An answer must be a JSON object."),
            ([], "An answer must be a JSON object."),
            ({"type": "array"}, "An answer must be a JSON object."),
            ({"type": "object"}, "The schema has no fields."),
            (of(), "The schema has no fields."),
            (of(a=3), "“a” must be an object such as"),
            (of(a={}), "“a” needs one type of object, array, string"),
            (of(a={"type": ["string", "null"]}), "“a” needs one type of"),
            (of(a={"type": "date"}), "“a” needs one type of"),
            (of(a={"type": "string", "pattern": "x"}), "“pattern” is not allowed for type string"),
            (of(a={"type": "integer", "maxLength": 3}), "“maxLength” is not allowed for type"),
            (of(a={"$ref": "#"}), "“a” needs one type of"),
            (of(a={"type": "string", "maxLength": 2000}), "maxLength may be at most 1,900"),
            (of(a={"enum": []}), "“one of” needs at least one value"),
            (of(a={"enum": [{}]}), "must be strings or numbers"),
            (of(a={"type": "array"}), "“a” is a list. Describe its items"),
            (of(a={"type": "object"}), "“a” is an object without fields"),
            (CITY | {"required": "city"}, "“required” is a list of field names"),
            (CITY | {"required": ["city", "city"]}, "two fields named “city”"),
            (CITY | {"required": ["river"]}, "“river” is required but is not a field"),
            (CITY | {"additionalProperties": {}}, "“additionalProperties” is true or false"),
            ({"type": "object", "properties": {" ": {"type": "string"}}}, "a field has no name"),
            ({"type": "object", "properties": {"n" * 101: {"type": "string"}}}, "too long"),
        ],
    )
    def test_refuses_with_the_field_and_the_reason(self, schema: Any, sentence: str) -> None:
        with pytest.raises(BadSchema) as refused:
            checked(schema)
        assert sentence in str(refused.value)

    def test_names_what_it_describes(self) -> None:
        with pytest.raises(BadSchema, match=r"^A row must be a JSON object\."):
            checked("no schema", of="A row")

    def test_depth_is_bounded(self) -> None:
        assert checked(nested(json_schemas.MAX_DEPTH))
        with pytest.raises(BadSchema, match=r"nested too deeply. The limit is 5 levels"):
            checked(nested(json_schemas.MAX_DEPTH + 1))

    def test_the_number_of_fields_is_bounded_over_all_levels(self) -> None:
        half = {f"f{n}": {"type": "string"} for n in range(50)}
        assert checked(of(**half))
        with pytest.raises(BadSchema, match=r"has 101 fields. The limit is 100"):
            checked(of(**half, inner=of(**half)))

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            *("type", "properties", "required", "items", "enum", "minimum"),
                            *("maximum", "minLength", "additionalProperties", "a", ""),
                        ]
                    ),
                    inner | st.sampled_from(["object", "array", "string", "integer", "boolean"]),
                    max_size=5,
                )
            ),
            max_leaves=30,
        )
    )
    def test_any_json_is_accepted_or_refused_with_a_sentence(self, schema: Any) -> None:
        try:
            found = checked(schema)
        except BadSchema as refused:
            assert str(refused).endswith(".")  # noqa: PT017 - both endings are right
        else:
            Draft202012Validator.check_schema(found)


class TestPendingChange:
    @pytest.mark.parametrize(
        ("field", "sentence"),
        [
            ({"minimum": 3, "maximum": 2}, "“a”: no value fits minimum 3 and maximum 2."),
            (
                {"exclusiveMinimum": 1, "maximum": 1},
                "“a”: no value fits exclusiveMinimum 1 and maximum 1.",
            ),
            ({"minLength": 5, "maxLength": 4}, "“a”: no value fits minLength 5 and maxLength 4."),
            (
                {"type": "array", "items": {"minItems": 2, "maxItems": 1}},
                "“a”: no value fits minItems 2 and maxItems 1.",
            ),
        ],
    )
    def test_names_the_limits(self, field: dict[str, Any], sentence: str) -> None:
        assert contradiction(of(a=field)) == sentence

    def test_names_the_path_of_a_field_inside(self) -> None:
        inner = of(b={"type": "integer", "minimum": 2, "maximum": 1})
        assert contradiction(of(a=inner)).startswith("“a.b”:")

    @given(st.integers(-5, 5), st.integers(-5, 5))
    def test_agrees_with_whether_a_number_fits(self, low: int, high: int) -> None:
        field = {"type": "integer", "minimum": low, "maximum": high}
        fits = any(Draft202012Validator(field).is_valid(value) for value in range(-6, 7))
        assert (contradiction(of(a=field)) == "") is fits

    def test_is_let_through_where_sense_is_not_asked_for(self) -> None:
        schema = of(a={"type": "integer", "minimum": 2, "maximum": 1})
        assert checked(schema, sense=False) == schema
        with pytest.raises(BadSchema):
            checked(schema)


class TestClosed:
    def test_forbids_other_fields_at_every_level(self) -> None:
        found = closed(of(a=of(b={"type": "string"}), c={"type": "array", "items": CITY}))
        assert found["additionalProperties"] is False
        assert found["properties"]["a"]["additionalProperties"] is False
        assert found["properties"]["c"]["items"]["additionalProperties"] is False

    def test_keeps_what_was_said(self) -> None:
        assert closed(CITY | {"additionalProperties": True})["additionalProperties"] is True

    def test_leaves_the_given_schema_alone(self) -> None:
        before = str(CITY)
        closed(CITY)
        assert str(CITY) == before
