"""Answers under a JSON schema whose slot was taken, on a real llama.cpp."""

import json
from typing import Any

import httpx2
import pytest

from apps.gateway.continuing import draft
from apps.servers.models import Server
from tests.gateway.continuing.cut_answers import (
    CHAT,
    COMPLETIONS,
    CONTINUED,
    RESTARTS,
    ask_beside_people,
    read,
    without_times,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed", "idle_slots"),
]

TEXT = {"type": "string", "minLength": 200, "maxLength": 260}
SCHEMA = {
    "type": "object",
    "properties": {"title": TEXT, "text": TEXT, "kind": {"enum": ["alpha", "beta"]}},
    "required": ["title", "text", "kind"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "note", "schema": SCHEMA}}
NO_SPACE = [[space, False] for space in (" ", "\n", "\r", "\t")]
BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Say much."}],
    "response_format": FORMAT,
    "max_tokens": 800,
    "temperature": 0,
    "presence_penalty": 1.0,
    "frequency_penalty": 0.3,
}


@pytest.fixture(autouse=True)
def _no_server_starts_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "starting_afresh", set())


def content(answer: httpx2.Response) -> str:
    text: str = read(answer)[0]["choices"][0]["message"]["content"]
    return text


def is_note(text: str) -> bool:
    note = json.loads(text)
    lengths = {len(note["title"]), len(note["text"])}
    return note.keys() == {"title", "text", "kind"} and lengths <= set(range(200, 261))


@pytest.mark.parametrize("cuts", [0, 1, 2])
async def test_the_answer_is_that_of_who_kept_its_slot(
    program: httpx2.AsyncClient, server: Server, cuts: int
) -> None:
    body = {**BODY, "logit_bias": NO_SPACE}
    plain = await program.post(CHAT, json=body)
    answer = await ask_beside_people(program, server, CHAT, body, cuts=cuts)
    assert answer.headers.get(CONTINUED, "0") == str(cuts)
    assert RESTARTS not in answer.headers
    assert is_note(content(plain))
    assert list(map(without_times, read(answer))) == list(map(without_times, read(plain)))


@pytest.mark.parametrize("stream", [False, True])
async def test_where_chance_decides_the_answer_is_one_of_the_schema(
    program: httpx2.AsyncClient, server: Server, stream: bool
) -> None:
    body = {**BODY, "temperature": 1.0, "stream": stream}
    answer = await ask_beside_people(program, server, CHAT, body)
    assert (answer.headers.get(CONTINUED), answer.headers.get(RESTARTS)) == ("1", None)
    if stream:
        deltas = (chunk["choices"][0]["delta"] for chunk in read(answer) if chunk["choices"])
        assert is_note("".join(delta.get("content") or "" for delta in deltas))
    else:
        assert is_note(content(answer))


async def test_white_space_that_the_server_cut_away_begins_again(
    program: httpx2.AsyncClient, server: Server
) -> None:
    """The tiny model writes some before the first bracket: the model saw it, nobody else did."""
    plain = await program.post(CHAT, json=BODY)
    answer = await ask_beside_people(program, server, CHAT, BODY)
    assert (answer.headers.get(CONTINUED), answer.headers.get(RESTARTS)) == (None, "1")
    assert content(answer) == content(plain)


async def test_a_grammar_that_starts_afresh_begins_again_and_is_known_from_then_on(
    program: httpx2.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def afresh(path: str, fields: dict[str, Any], text: str, tokens: int) -> dict[str, Any]:
        return fields

    body = {**BODY, "logit_bias": NO_SPACE}
    plain = await program.post(CHAT, json=body)
    with monkeypatch.context() as patch:
        patch.setattr(draft, "continued", afresh)
        answer = await ask_beside_people(program, server, CHAT, body)
    assert (answer.headers.get(CONTINUED), answer.headers.get(RESTARTS)) == (None, "1")
    assert content(answer) == content(plain)
    assert draft.starting_afresh == {server.base_url}

    lively = {**body, "temperature": 1.0, "stream": True}
    answer = await ask_beside_people(program, server, CHAT, lively)
    assert (answer.headers.get(CONTINUED), answer.headers.get(RESTARTS)) == (None, "1")


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        (CHAT, {"grammar": 'root ::= "{" [a-z ]{600,700} "}"', "response_format": None}),
        (COMPLETIONS, {"prompt": "Say", "messages": None, "json_schema": SCHEMA}),
    ],
    ids=["a grammar", "a schema of a completion"],
)
async def test_a_grammar_without_a_template_begins_again(
    program: httpx2.AsyncClient, server: Server, path: str, changed: dict[str, Any]
) -> None:
    body = {name: value for name, value in {**BODY, **changed}.items() if value is not None}
    if path == COMPLETIONS:
        del body["response_format"]
    answer = await ask_beside_people(program, server, path, {**body, "stream": True})
    assert (answer.headers.get(CONTINUED), answer.headers.get(RESTARTS)) == (None, "1")
