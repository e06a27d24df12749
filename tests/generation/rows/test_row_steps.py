"""A row as a conversation: what is asked when, and what becomes of the answers."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.generation.recipe.parse import parse
from apps.generation.recipe.recipe import Recipe
from apps.generation.rows import generate_row as rows
from apps.generation.rows.replay import rebuild_row
from apps.generation.rows.row_steps import Reply, Row, RowRequest, row_steps
from apps.generation.rows.samplers import RowSeed
from apps.llm.client import ChatRequest, Client, Completion
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion

SCHEMA = {
    "type": "object",
    "required": ["title", "body"],
    "properties": {
        "title": {"type": "string", "maxLength": 80},
        "body": {"type": "string"},
    },
}
TICKETS: dict[str, Any] = {
    "system": "You write support tickets.",
    "columns": [
        {"name": "topic", "values": ["printer"]},
        {"name": "angry", "kind": "category", "values": ["yes", "no"]},
        {
            "name": "ticket",
            "kind": "structured",
            "prompt": "A ticket about a {{ topic }}.",
            "schema": SCHEMA,
        },
        {
            "name": "reply",
            "kind": "text",
            "prompt": "Now answer “{{ title }}” as the help desk.",
            "checks": [{"kind": "lacks", "text": "as an AI"}],
        },
        {
            "name": "judge",
            "kind": "judge",
            "criteria": [{"name": "quality", "description": "Is it real?", "at_least": 3}],
        },
    ],
}


def play(recipe: Recipe, *replies: Any, index: int = 0) -> tuple[list[RowRequest], Row]:
    """Plays the model: texts, objects or (text, finish reason)."""
    steps = row_steps(recipe, RowSeed(index, 7))
    asks: list[RowRequest] = []
    left = iter(replies)
    try:
        ask = next(steps)
        while True:
            asks.append(ask)
            reply = next(left)
            text, finish = reply if isinstance(reply, tuple) else (reply, "stop")
            ask = steps.send(Reply(text if isinstance(text, str) else json.dumps(text), finish))
    except StopIteration as end:
        row = end.value
        assert isinstance(row, Row)
        return asks, row


TICKET = {"title": "It prints blank pages", "body": "Since Monday."}
GOOD = {"judge_reason": "Fine.", "quality": 4}


def test_later_columns_go_on_in_the_same_conversation() -> None:
    asks, row = play(parse(TICKETS), TICKET, " Restart it. ", GOOD)
    assert [len(ask.messages) for ask in asks] == [2, 4, 6]
    for earlier, later in pairwise(asks):
        assert later.messages[: len(earlier.messages)] == earlier.messages
    assert asks[1].messages[2] == {"role": "assistant", "content": json.dumps(TICKET)}
    assert asks[1].messages[3]["content"] == (
        "Now answer “It prints blank pages” as the help desk.\n\nAnswer with plain text this time."
    )
    assert "- quality: one of 1, 2, 3, 4, 5 (Is it real?)" in asks[2].messages[5]["content"]
    assert len({ask.seed for ask in asks}) == 3
    assert not row.code
    assert row.output == {
        "topic": "printer",
        "angry": row.values["angry"],
        **TICKET,
        "reply": "Restart it.",
        **GOOD,
    }
    assert row.texts == (*TICKET.values(), "Restart it.")


def test_what_all_rows_share_comes_first_byte_for_byte() -> None:
    recipe = parse(TICKETS)
    systems = {
        play(recipe, TICKET, "x", GOOD, index=at)[0][0].messages[0]["content"] for at in [0, 1]
    }
    assert systems == {
        "You write support tickets.\n\nAnswer with one JSON object with these fields:\n"
        "- title: string, at most 80 characters\n- body: string"
    }


@pytest.mark.parametrize(
    ("replies", "code", "reason"),
    [
        ([(TICKET, "length")], "length", "“ticket”: Max tokens reached"),
        (["{", "{"], "invalid_json", "“ticket”: Not valid JSON"),
        ([{"title": "x"}, {"title": "x"}], "schema", "“ticket”: "),
        ([TICKET, "  "], "empty", "“reply”: The text is empty."),
        ([TICKET, "As an AI I cannot."], "check_lacks", "“reply”: reply: Contains forbidden text"),
        (
            [TICKET, "Hello.", {"judge_reason": "Dull.", "quality": 2}],
            "judged",
            "“judge”: quality 2 of 5, minimum 3. Dull.",
        ),
        ([TICKET, "Hello.", *[{"judge_reason": "?", "quality": 9}] * 2], "schema", "“judge”: “qu"),
    ],
)
def test_the_first_bad_answer_ends_the_row(replies: list[Any], code: str, reason: str) -> None:
    asks, row = play(parse(TICKETS), *replies)
    assert len(asks) == len(replies)
    assert row.code == code
    assert row.reason.startswith(reason)


def test_an_answer_that_cannot_be_read_is_asked_for_once_more_with_what_is_wrong() -> None:
    wrong = '{"title": "x"'
    asks, row = play(parse(TICKETS), wrong, TICKET, "Restart it.", GOOD)
    assert not row.code
    assert row.output is not None
    assert row.output["title"] == TICKET["title"]
    assert [ask.is_repeat for ask in asks] == [False, True, False, False]
    first, second, later, _ = asks
    assert second.messages[:-2] == first.messages
    assert second.messages[-2] == {"role": "assistant", "content": wrong}
    assert "Not valid JSON" in second.messages[-1]["content"]
    assert second.seed != first.seed
    # Later columns go on as if the good answer had been the first one.
    assert later.messages[:-1] == (
        *first.messages,
        {"role": "assistant", "content": json.dumps(TICKET)},
    )


def test_a_condition_leaves_a_column_out() -> None:
    columns = [
        *TICKETS["columns"][:3],
        TICKETS["columns"][3] | {"condition": "angry == 'yes'"},
        {"name": "note", "kind": "expression", "expression": "'said: ' ~ (reply or 'nothing')"},
    ]
    recipe = parse(TICKETS | {"columns": columns})
    seen = set()
    for index in range(20):
        asks, row = play(recipe, TICKET, "Sorry.", index=index)
        angry = row.values["angry"]
        seen.add(angry)
        assert len(asks) == (2 if angry == "yes" else 1)
        assert row.output is not None
        assert row.output["reply"] == ("Sorry." if angry == "yes" else None)
        assert row.output["note"] == ("said: Sorry." if angry == "yes" else "said: nothing")
    assert seen == {"yes", "no"}


def test_a_column_that_only_helps_is_not_in_the_row() -> None:
    columns = [
        {"name": "plan", "kind": "text", "prompt": "Plan it.", "keep": False},
        {"name": "text", "kind": "text", "prompt": "Write it."},
    ]
    _, row = play(parse({"columns": columns}), "First this.", "Done.")
    assert row.output == {"text": "Done."}
    assert row.texts == ("Done.",)


def test_candidates_one_is_drawn_by_their_probabilities() -> None:
    recipe = parse(
        {"columns": [{"name": "joke", "kind": "text", "prompt": "Go.", "candidates": 3}]}
    )
    told = {
        "candidates": [
            {"answer": "common", "probability": 0.7},
            {"answer": "less so", "probability": 0.2},
            {"answer": "never", "probability": 0.0},
        ]
    }
    found = []
    for index in range(200):
        asks, row = play(recipe, told, index=index)
        assert row.output is not None
        found.append(row.output["joke"])
    assert "Give 3 different answers" in asks[0].messages[-1]["content"]
    assert set(found) == {"common", "less so"}
    assert 20 < found.count("less so") < 80
    nothing = {"candidates": [{"answer": a, "probability": 0} for a in "abc"]}
    drawn = {str((play(recipe, nothing, index=at)[1].output or {})["joke"]) for at in range(50)}
    assert drawn == {"a", "b", "c"}


def test_candidates_of_objects() -> None:
    recipe = parse({"prompt": "Go.", "schema": SCHEMA, "candidates": 2})
    told = {"candidates": [{"answer": TICKET, "probability": 0.5}] * 2}
    _, row = play(recipe, told)
    assert row.output == TICKET
    wrong = {"candidates": [{"answer": {"title": 1}, "probability": 1}] * 2}
    _, row = play(recipe, wrong, wrong)
    assert row.code == "schema"


def test_a_row_that_cannot_be_put_together_is_rejected() -> None:
    columns = [
        {"name": "n", "kind": "number", "min": 0, "max": 0},
        {"name": "m", "kind": "expression", "expression": "1 / n"},
    ]
    asks, row = play(parse({"columns": columns, "prompt": "{{ m }}"}))
    assert (asks, row.code, row.reason) == ([], "bad_prompt", "Division by zero.")


FACTS = {
    "type": "object",
    "required": ["place", "stars"],
    "properties": {"place": {"type": "string", "maxLength": 9}, "stars": {"type": "integer"}},
}
KINDS: dict[str, dict[str, Any]] = {
    "text": {"kind": "text", "prompt": "Go on.", "checks": [{"kind": "lacks", "text": "bad"}]},
    "help": {"kind": "text", "prompt": "Go on.", "keep": False},
    "maybe": {"kind": "text", "prompt": "Go on.", "condition": "first == 'a'"},
    "drawn": {"kind": "category", "values": ["x", "y", "z"]},
    "facts": {"kind": "structured", "prompt": "Go on.", "schema": FACTS},
    "judge": {"kind": "judge", "criteria": [{"name": "score", "at_least": 3}]},
}
GIVEN: dict[str, list[Any]] = {
    "text": ["fine", "bad", " ", ("fine", "length")],
    "structured": [
        {"place": "here", "stars": 2},
        {"place": "far too long", "stars": 2},
        {"place": "here"},
        "{",
        ('{"pl', "length"),
    ],
    "judge": [{"judge_reason": "So.", "score": 4}, {"judge_reason": "So.", "score": 1}, "{"],
}


@pytest.mark.parametrize("tells", [True, False])
async def test_row_cost_says_whether_cached_tokens_were_reported(tells: bool) -> None:
    columns = [{"name": name, "kind": "text", "prompt": "Go."} for name in ("one", "two")]

    class Script(ResumableCompletion):
        async def complete(self, client: Client, request: ChatRequest) -> Completion:
            usage = Usage(10, 0, 5, tells_cached=tells or len(request.messages) > 2)
            return Completion("Well.", "", "stop", usage)

    recipe = parse({"columns": columns})
    row = await rows.generate_row(recipe, RowSeed(0, 7), cast(Client, None), "m", Script())
    assert (row.usage, row.usage.tells_cached) == (Usage(20, 0, 10), tells)


def answered(ask: RowRequest, choice: int) -> Reply:
    given = GIVEN[type(ask.shared.column).__name__.lower()]
    reply = given[choice % len(given)]
    text, finish = reply if isinstance(reply, tuple) else (reply, "stop")
    return Reply(text if isinstance(text, str) else json.dumps(text), finish)


def told(
    recipe: Recipe, row_seed: RowSeed, passed: list[str], choices: Iterator[int]
) -> tuple[Row, list[str]]:
    """A row, and the last reply to each of its questions."""
    steps, replies = row_steps(recipe, row_seed), list[str]()
    try:
        ask = next(steps)
        while True:
            if len(replies) < len(passed):
                reply = Reply(passed[len(replies)], "stop", is_accepted=True)
            else:
                reply = answered(ask, next(choices))
            replies[len(replies) - ask.is_repeat :] = [reply.text]
            ask = steps.send(reply)
    except StopIteration as end:
        row: Row = end.value
        return row, replies


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(KINDS)), max_size=4, unique=True),
    st.lists(st.integers(0, 4), min_size=12, max_size=12),
    st.integers(0, 50),
)
def test_a_row_that_is_wanted_after_all_comes_out_whole(
    kinds: list[str], choices: list[int], index: int
) -> None:
    """Wherever it was given up: what was drawn and said stays, what is missing is asked for."""
    columns = [{"name": "first", "values": ["a", "b"]}, {"name": "begin", **KINDS["text"]}]
    recipe = parse({"columns": [*columns, *({"name": kind, **KINDS[kind]} for kind in kinds)]})
    row_seed = RowSeed(index, 7)
    row, replies = told(recipe, row_seed, [], iter(choices))
    first = row.output or {}
    for turn in range(1, 9):
        if not row.code:
            break
        again, used = rebuild_row(recipe, row_seed, replies)
        if not again.code:
            row = again
            break
        if not used:
            return  # nothing in it could be read
        row_seed = replace(row_seed, turn=turn)
        row, replies = told(recipe, row_seed, replies[:used], itertools.repeat(0))
    assert not row.code
    assert row.output is not None
    assert list(row.output) == recipe.field_names
    for name in ("first", "drawn"):
        assert row.output.get(name) == first.get(name, row.output.get(name))
    assert row.output["begin"].strip()
