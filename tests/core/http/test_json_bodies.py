"""JSON that programs send: what no database keeps is refused with its place."""

import json
from typing import Any

import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.core.api import ApiError
from apps.core.http.json_bodies import MOST_LEVELS, read

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)
BAD = ["\0", "\ud800", "a\udfffb"]


@settings(max_examples=50, deadline=None)
@given(VALUES)
def test_read_returns_other_json_as_it_is(value: Any) -> None:
    assert read(json.dumps(value).encode()) == value
    assert read(json.dumps(value, ensure_ascii=False).encode()) == value


def test_escaped_backslashes_are_no_surrogates() -> None:
    for text in ("\\u0000", "\\\\ud800", "\U0001f600"):
        assert read(json.dumps({text: [text]}).encode()) == {text: [text]}


def refused(body: str | bytes) -> ApiError:
    with pytest.raises(ApiError) as error:
        read(body if isinstance(body, bytes) else body.encode())
    return error.value


@pytest.mark.parametrize("bad", BAD)
def test_a_character_that_no_database_keeps_is_named_by_its_place(bad: str) -> None:
    error = refused(json.dumps({"a": [{"b": "fine"}, {"b": bad}], "c": bad}))
    assert error.status == 422
    assert [e["loc"] for e in error.errors] == [["body", "a", "1", "b"], ["body", "c"]]
    assert "a.1.b, c has a character that cannot be stored" in str(error)
    json.dumps(error.errors).encode()
    assert refused(json.dumps({bad: 1})).status == 422
    assert refused(json.dumps(bad)).status == 422


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("1" * 5000, 422, "does not fit into 64 bits"),
        (f'{{"server": {2**63}}}', 422, "does not fit into 64 bits"),
        (f"[{-(2**63)}]", 422, "does not fit into 64 bits"),
        ("1e999", 422, "is too large"),
        ("[NaN]", 422, "NaN is no number"),
        ("-Infinity", 422, "-Infinity is no number"),
        ("[" * 101 + "]" * 101, 422, "more than 100 lists or objects"),
        ('{"a":' * 101 + "1" + "}" * 101, 422, "more than 100 lists or objects"),
        ("[" * 100_000, 422, "more than 100 lists or objects"),
        ("{", 400, "cannot be read as JSON"),
        (b'"\xed\xa0\x80"', 400, "not in UTF-8"),
        (b'"\xff"', 400, "not in UTF-8"),
    ],
)
def test_read_refuses_bad_json_with_its_status(body: str | bytes, status: int, said: str) -> None:
    error = refused(body)
    assert error.status == status
    assert said in str(error)


def test_as_deep_as_allowed() -> None:
    assert read(b"[" * MOST_LEVELS + b"]" * MOST_LEVELS)
    assert read(b"[" + b"[],{}," * 1000 + b"[]]")


def test_a_route_says_it_in_the_promised_shape(api: Client) -> None:
    def post(body: str) -> Any:
        return api.post("/api/v1/conversations", body, content_type="application/json")

    for body, status in (('{"title": "\\udfff"}', 422), ("1" * 5000, 422), ("{", 400)):
        answer = post(body)
        assert answer.status_code == status
        assert set(answer.json()) == {"code", "detail", "errors"}
    answer = api.get("/api/v1/conversations?after=%00")
    assert (answer.status_code, answer.json()["errors"][0]["loc"]) == (422, ["query", "after"])
    made = post('{"title": "x"}').json()["id"]
    answer = api.patch(
        f"/api/v1/conversations/{made}", '{"tags": ["\\udfff"]}', content_type="application/json"
    )
    assert answer.status_code == 422
