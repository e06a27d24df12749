"""Replies of earlier previews: used for equal requests, and for no others."""

import json
from typing import Any, cast

import pytest

from apps.generation.previews.known_replies import (
    RecordedCompletion,
    Reply,
    UnknownReply,
    digest,
    read_replies,
    write_replies,
)
from apps.llm.client import ChatRequest, Client, Completion
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion

CLIENT = cast(Client, None)
ANSWER = Completion("Good.", "", "stop", Usage(9, 4, 2, 30.0))


def request(text: str = "Write.", **parts: Any) -> ChatRequest:
    return ChatRequest("m", [{"role": "user", "content": text}], 20, **parts)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[ChatRequest]:
    requests: list[ChatRequest] = []

    async def complete(
        self: ResumableCompletion, client: Client, request: ChatRequest
    ) -> Completion:
        requests.append(request)
        return ANSWER

    monkeypatch.setattr(ResumableCompletion, "complete", complete)
    return requests


async def recorded() -> list[Reply]:
    completion = RecordedCompletion(1, {}, may_ask=True)
    assert await completion.complete(CLIENT, request()) == ANSWER
    assert (completion.asked, completion.spent) == (1, ANSWER.usage)
    return completion.used


async def test_an_equal_request_is_not_sent_again(sent: list[ChatRequest]) -> None:
    known = read_replies(write_replies(await recorded()))
    completion = RecordedCompletion(1, known, may_ask=False)
    assert await completion.complete(CLIENT, request()) == ANSWER
    assert (len(sent), completion.asked, completion.spent.prompt_tokens) == (1, 0, 0)
    assert list(completion.used) == list(known.values())


@pytest.mark.parametrize(
    ("server", "other"),
    [
        (2, request()),
        (1, request("Write it.")),
        (1, request(params={"seed": 4})),
        (1, request(response_format={"type": "json_schema"})),
    ],
)
async def test_another_request_is_sent(
    sent: list[ChatRequest], server: int, other: ChatRequest
) -> None:
    known = read_replies(write_replies(await recorded()))
    with pytest.raises(UnknownReply):
        await RecordedCompletion(server, known, may_ask=False).complete(CLIENT, other)
    completion = RecordedCompletion(server, known, may_ask=True)
    await completion.complete(CLIENT, other)
    assert sent[1:] == [other]
    assert completion.used[0].request == digest(server, other)


@pytest.mark.parametrize(
    "text",
    ["", "[", "{}", "[{}]", '["x"]', "[" * 10_000, json.dumps([{"request": "x" * 64}])],
)
def test_replies_that_cannot_be_read_are_left_out(text: str) -> None:
    assert read_replies(text) == {}


async def test_too_many_replies_are_left_out(sent: list[ChatRequest]) -> None:
    assert read_replies(write_replies(await recorded() * 401)) == {}
