"""Streamed pieces of tool calls, put together as different servers send them."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.chat.prompt.messages import PromptCall
from apps.chat.tools.arguments import ARGUMENT_CHARACTERS, parse_arguments, truncate
from apps.chat.tools.call_pieces import CallAssembler
from apps.core.tools import Tool, ToolError, parameters

TOOL = Tool(
    "pour", "Pour", "Pours.", parameters(cups={"type": "integer", "minimum": 1}), "tests.nowhere"
)


def piece(arguments: Any, **head: Any) -> dict[str, Any]:
    name = head.pop("name", None)
    return {**head, "function": {"arguments": arguments} | ({"name": name} if name else {})}


def assembled(*pieces: dict[str, Any], number: int = 1) -> list[PromptCall]:
    assembler = CallAssembler()
    for one in pieces:
        assembler.add(one)
    return assembler.take(number)


def test_pieces_of_two_calls_are_kept_apart() -> None:
    calls = assembled(
        piece('{"a"', index=0, id="x", name="add"),
        piece('{"b"', index=1, id="y", name="pour"),
        piece(": 1}", index=0),
        piece(": 2}", index=1),
    )
    assert calls == [PromptCall("x", "add", '{"a": 1}'), PromptCall("y", "pour", '{"b": 2}')]


def test_calls_with_one_index_differ_by_their_id() -> None:
    calls = assembled(
        piece("{}", index=0, id="x", name="add"), piece("{}", index=0, id="y", name="pour")
    )
    assert [(call.id, call.name) for call in calls] == [("x", "add"), ("y", "pour")]


def test_a_call_without_an_id_gets_one_that_names_its_round() -> None:
    (call,) = assembled(piece("{}", index=0, name="add"), number=3)
    assert call.id == "call_3_1"


def test_arguments_that_are_no_text_become_json() -> None:
    (call,) = assembled(piece({"cups": 2}, index=0, id="x", name="pour"))
    assert json.loads(call.arguments) == {"cups": 2}


def test_taking_the_calls_starts_over() -> None:
    assembler = CallAssembler()
    assert not assembler
    assembler.add(piece("{}", index=0, id="x", name="add"))
    assert assembler
    assert len(assembler.take(1)) == 1
    assert not assembler
    assert assembler.take(2) == []


def test_what_a_database_cannot_store_is_replaced() -> None:
    (call,) = assembled(piece('{"a": "\0"}', index=0, id="x" * 300, name="p\0our"))
    assert "\0" not in call.name + call.arguments
    assert len(call.id) == 200


@given(st.text(min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_the_cuts_between_pieces_do_not_matter(arguments: str, cuts: list[int]) -> None:
    places = sorted({0, *(cut for cut in cuts if cut < len(arguments)), len(arguments)})
    parts = [arguments[a:b] for a, b in pairwise(places)]
    whole = assembled(piece(arguments, index=0, id="x", name="add"))
    assert assembled(*[piece(part, index=0, id="x") for part in parts])[0].arguments == (
        whole[0].arguments
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ('{"cups": 1', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"cups": "one"}', "is not of type 'integer'"),
        ("{}", "'cups' is a required property"),
        ("[]", "is not of type 'object'"),
        (json.dumps({"cups": 1, "x": "y" * ARGUMENT_CHARACTERS}), "longer than 100,000"),
    ],
)
def test_arguments_that_do_not_fit(arguments: str, sentence: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse_arguments(arguments, TOOL)
    assert sentence in str(refused.value)


def test_arguments_that_fit() -> None:
    assert parse_arguments('{"cups": 2}', TOOL) == {"cups": 2}


@given(st.text(max_size=50), st.integers(1, 60))
def test_truncate_keeps_the_beginning_and_counts_the_rest(text: str, limit: int) -> None:
    cut = truncate(text, limit)
    if len(text) <= limit:
        assert cut == text
    else:
        assert cut.startswith(text[:limit] + "\n[Cut here")
        assert f"of {len(text):,} characters" in cut
