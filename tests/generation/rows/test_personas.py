"""People the model makes up: asked until there are enough, never twice the same."""

import json

import pytest
from django.test import AsyncClient

from apps.generation.rows import personas
from apps.generation.rows.personas import NoPersonas
from apps.llm.client import ChatRequest, Client, Completion
from apps.llm.events import Usage
from apps.servers.models import Server
from apps.servers.services import choose_target

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_closed_connections"),
]


@pytest.fixture
def asked() -> list[ChatRequest]:
    return []


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, asked: list[ChatRequest]) -> list[str]:
    left: list[str] = []

    async def complete(self: Client, request: ChatRequest) -> Completion:
        asked.append(request)
        return Completion(left.pop(0) if left else "", "", "stop", Usage(1, 0, 1))

    monkeypatch.setattr(Client, "complete", complete)
    return left


async def test_write_asks_again_until_there_are_enough_personas(
    server: Server, answers: list[str]
) -> None:
    answers += [
        json.dumps({"people": ["a tired nurse", "A  TIRED nurse"]}),
        "{",
        json.dumps({"people": ["a farmer of 60", "a boy of nine", "a judge on leave"]}),
    ]
    assert await personas.write(choose_target(server, "m"), "bank customers", 25) == [
        *("a tired nurse", "a farmer of 60", "a boy of nine", "a judge on leave"),
    ]


@pytest.mark.parametrize(
    "answer", ["", '{"people": null}', '{"people": 3}', "[1]", "[" * 100_000, '{"people": ["x"]}']
)
async def test_write_raises_no_personas_when_no_answer_has_any(
    server: Server, answers: list[str], answer: str
) -> None:
    answers += [answer] * 10
    with pytest.raises(NoPersonas):
        await personas.write(choose_target(server, "m"), "", 3)


async def test_page_gets_personas_or_a_sentence(
    async_browser: AsyncClient, server: Server, answers: list[str]
) -> None:
    answers.append(json.dumps({"people": ["a tired nurse"]}))
    answer = await async_browser.post("/generate/personas/", {"about": "x", "count": "1"})
    assert answer.json() == {"values": ["a tired nurse"]}
    answer = await async_browser.post("/generate/personas/", {"count": "no"})
    assert "Enter them yourself" in answer.json()["problem"]


async def test_the_model_thinks_as_the_job_is_set_to(
    async_browser: AsyncClient, server: Server, answers: list[str], asked: list[ChatRequest]
) -> None:
    answers.append(json.dumps({"people": ["a tired nurse"]}))
    await async_browser.post("/generate/personas/", {"count": "1", "thinking": "300"})
    assert asked[0].params["reasoning_budget_tokens"] == 300
    answer = await async_browser.post("/generate/personas/", {"count": "1", "thinking": "much"})
    assert "a number of tokens from 0" in answer.json()["problem"]
