"""Structured output: what the editor and the API may ask for."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.chat.prompt import response_format
from apps.chat.prompt.response_format import BadResponseFormat
from apps.core.schemas.json_schemas import BadSchema

SCHEMA = {"type": "object", "properties": {"mood": {"type": "string"}}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "json_schema", "schema", "properties", "name", "strict", "a"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("typed", ["", "{}", '{"type": "object", "properties": {}}'])
def test_parse_form_takes_a_schema_without_fields_as_free_text(typed: str) -> None:
    assert response_format.parse_form(typed) == {}


def test_parse_form_closes_the_schema() -> None:
    found = response_format.parse_form(json.dumps(SCHEMA))
    assert (found["type"], found["json_schema"]["strict"]) == ("json_schema", True)
    assert response_format.schema_of(found)["additionalProperties"] is False


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("{", "not valid JSON"),
        ("[" * 40_000, "not valid JSON"),
        ('"' + "x" * 50_000 + '"', "too long. The limit is 50,000 characters"),
    ],
)
def test_parse_form_refuses_text_that_is_no_schema(typed: str, sentence: str) -> None:
    with pytest.raises(BadSchema, match=sentence):
        response_format.parse_form(typed)


def test_check_keeps_the_formats_of_the_openai_api() -> None:
    assert response_format.check(None) == response_format.check({"type": "text"}) == {}
    assert response_format.check({"type": "json_object"}) == {"type": "json_object"}
    named = {"name": "n" * 80, "schema": SCHEMA, "strict": False, "odd": 1}
    found = response_format.check({"type": "json_schema", "json_schema": named})
    assert found["json_schema"].keys() == {"name", "schema", "strict"}
    assert (len(found["json_schema"]["name"]), found["json_schema"]["strict"]) == (64, False)


@pytest.mark.parametrize(
    "given", [{"type": "xml"}, {"json_schema": {}}, {"type": "json_schema", "json_schema": "x"}]
)
def test_check_names_the_formats_that_it_takes(given: dict[str, Any]) -> None:
    with pytest.raises(BadResponseFormat, match="`response_format` is"):
        response_format.check(given)


@given(JSON)
def test_check_returns_a_format_or_refuses_any_object(data: Any) -> None:
    given = data if isinstance(data, dict) else {"type": "json_schema", "json_schema": data}
    try:
        found = response_format.check(given)
    except BadResponseFormat:
        return
    assert response_format.check(found) == found
