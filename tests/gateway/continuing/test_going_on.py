"""Requests whose slot was taken end as if nothing had happened, on a real llama.cpp."""

from typing import Any

import httpx2
import pytest

from apps.servers.models import Server
from tests.gateway.continuing.cut_answers import (
    BODIES,
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


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("cuts", [0, 1, 2])
async def test_the_answer_is_that_of_who_kept_its_slot(
    program: httpx2.AsyncClient, server: Server, path: str, stream: bool, cuts: int
) -> None:
    body = {**BODIES[path], "stream": stream}
    if stream:
        body["stream_options"] = {"include_usage": True}
    plain = await program.post(path, json=body)
    answer = await ask_beside_people(program, server, path, body, cuts=cuts)
    assert answer.headers.get(CONTINUED, "0") == str(cuts)
    assert RESTARTS not in answer.headers
    chunks = read(answer)
    assert list(map(without_times, chunks)) == list(map(without_times, read(plain)))
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert answer.headers["content-type"] == plain.headers["content-type"]


@pytest.mark.parametrize(
    "changed",
    [
        {"logprobs": True},
        {"temperature": 0.8, "seed": 3},
        {"mirostat": 2},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
    ],
    ids=["probabilities", "a seed", "a sampler with a memory", "a begun answer"],
)
async def test_what_might_end_otherwise_begins_again(
    program: httpx2.AsyncClient, server: Server, changed: dict[str, Any]
) -> None:
    body = {**BODIES[CHAT], "stream": True, **changed}
    plain = await program.post(CHAT, json=body)
    answer = await ask_beside_people(program, server, CHAT, body)
    assert (answer.headers.get(CONTINUED), answer.headers[RESTARTS]) == (None, "1")
    same = [[chunk["choices"] for chunk in read(one)] for one in (answer, plain)]
    assert same[0] == same[1]


async def test_other_servers_are_not_known_to_go_on(
    program: httpx2.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "continues_messages", False)
    answer = await ask_beside_people(program, server, CHAT, {**BODIES[CHAT], "stream": True})
    assert answer.headers[RESTARTS] == "1"


async def test_a_server_that_refuses_to_go_on_begins_again(
    program: httpx2.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str, fields: dict[str, Any], text: str, tokens: int) -> dict[str, Any]:
        return {**fields, "messages": "no list"}

    monkeypatch.setattr("apps.gateway.continuing.draft.continued", refused)
    plain = await program.post(CHAT, json=BODIES[CHAT])
    answer = await ask_beside_people(program, server, CHAT, BODIES[CHAT])
    assert (answer.headers.get(CONTINUED), answer.headers[RESTARTS]) == (None, "1")
    assert read(answer)[0]["choices"] == read(plain)[0]["choices"]
