"""Rows as conversations to train a chat model on."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.batch.models import ItemStatus
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.library.starters import BY_KEY
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from apps.generation.rows.conversations import Sides, conversation
from apps.generation.services import create_job
from apps.servers.models import Server
from tests.generation.conftest import body_of, finish

ASKED = ["Ask something.", "Now answer.", "Judge it."]
SAID = ["Where is it?", "On its way.", '{"judge_reason": "Good.", "helpful": 5}']
ROW = {"person": "a student", "topic": "a crash", "question": SAID[0], "answer": SAID[1]}


@pytest.fixture
def chat(alice: User, server: Server) -> Job:
    """A judged row of the ready recipe for conversations."""
    recipe = parse(BY_KEY["chat"].recipe)
    job = create_job(
        JobRequest(name="C", rows=1, seed=1, recipe=recipe), owner=alice, server=server
    )
    output = ROW | {"judge_reason": "Good.", "helpful": 5}
    asked, said = json.dumps(ASKED), json.dumps(SAID)
    finish(job, 0, ItemStatus.ACCEPTED, output=output, prompt=asked, raw=said)
    return job


async def exported(client: AsyncClient, job: Job, query: str = "") -> list[dict[str, str]]:
    answer = await client.get(f"/generate/{job.pk}/export/?format=chat{query}")
    messages: list[dict[str, str]] = json.loads(await body_of(answer))["messages"]
    return messages


@pytest.mark.django_db(transaction=True)
class TestExport:
    async def test_the_two_texts_are_the_two_sides(
        self, async_browser: AsyncClient, chat: Job
    ) -> None:
        assert await exported(async_browser, chat) == [
            {"role": "user", "content": "Where is it?"},
            {"role": "assistant", "content": "On its way."},
        ]

    async def test_other_sides(self, async_browser: AsyncClient, chat: Job) -> None:
        found = await exported(async_browser, chat, "&user=topic&assistant=question")
        assert [message["content"] for message in found] == ["a crash", "Where is it?"]

    async def test_what_was_asked_ends_before_the_judge(
        self, async_browser: AsyncClient, chat: Job
    ) -> None:
        found = await exported(async_browser, chat, "&user=&assistant=")
        assert [message["role"] for message in found[1:]] == ["user", "assistant"] * 2
        assert found[-1]["content"] == "On its way."

    @pytest.mark.parametrize(
        "query", ["&user=topic&assistant=x", "&user=topic", "&assistant=topic"]
    )
    async def test_no_such_side(self, async_browser: AsyncClient, chat: Job, query: str) -> None:
        answer = await async_browser.get(f"/generate/{chat.pk}/export/?format=chat{query}")
        assert (answer.status_code, answer["location"]) == (302, f"/generate/{chat.pk}/use/")


@pytest.mark.django_db
def test_an_edited_answer_ends_the_conversation(chat: Job) -> None:
    item = chat.batch.items.get()
    item.edited = ROW | {"answer": "It is lost."}
    assert conversation(chat.spec, item)[-1]["content"] == "It is lost."


@pytest.mark.parametrize(
    ("starter", "sides"),
    [
        ("chat", Sides("question", "answer")),
        ("qa", Sides("question", "answer")),
        ("reviews", None),
        ("tickets", None),
    ],
)
def test_the_likeliest_sides(starter: str, sides: Sides | None) -> None:
    assert Sides.of(parse(BY_KEY[starter].recipe)) == sides


def test_a_title_is_no_side_where_a_text_and_an_answer_follow() -> None:
    ticket = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "body": {"type": "string"}},
    }
    columns = [
        {"name": "ticket", "kind": "structured", "prompt": "Go.", "schema": ticket},
        {"name": "reply", "kind": "text", "prompt": "Answer."},
    ]
    assert Sides.of(parse({"columns": columns})) == Sides("body", "reply")


def test_one_side_is_none() -> None:
    recipe: Any = parse(BY_KEY["qa"].recipe)
    with pytest.raises(RecipeError, match="a user message and an assistant message"):
        Sides.asked_for(recipe, "question", "")
