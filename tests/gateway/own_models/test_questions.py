"""A trained classifier among the models, and its answers to the questions of decision models."""

import httpx2
import openai  # noqa: TID251 - a program that asks us
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from apps.classifiers.models import Classifier, Run
from apps.core.models import ApiKey
from apps.gateway.application import Gateway
from tests.gateway.own_models.conftest import GREETING
from tests.gateway.test_openai_sdk import sdk_with

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_counters")]
TOPIC = {"topic": {"type": "choice", "criteria": {"hello": "a greeting", "rate": None}}}


async def test_only_its_owner_sees_it(
    sdk: openai.AsyncOpenAI, name: str, gateway: Gateway, bob: User
) -> None:
    [listed] = [model for model in (await sdk.models.list()).data if model.id == name]
    known = listed.model_extra or {}
    assert listed.owned_by == "workbench"
    assert known["abilities"] == {"decisions": True}
    assert (known["aliases"], known["state"]) == (["classifier/Topics"], "loaded")
    _, other = await sync_to_async(ApiKey.issue)(user=bob, name="b")
    async with sdk_with(other, gateway) as theirs:
        assert name not in [model.id for model in (await theirs.models.list()).data]
    key = await ApiKey.objects.aget(user__username="alice")
    key.allowed_models = ["qwen3"]
    await key.asave()
    assert name not in [model.id for model in (await sdk.models.list()).data]


async def test_probabilities_are_over_the_options_of_a_question(
    program: httpx2.AsyncClient, name: str
) -> None:
    body = {"model": name, "state": {"text": GREETING}, "questions": TOPIC}
    answer = (await program.post("/v1/systemone", json=body)).json()
    topic = answer["answers"]["topic"]
    assert (topic["type"], topic["choice"]) == ("choice", "hello")
    assert list(topic["probabilities"]) == ["hello", "rate"]
    assert sum(topic["probabilities"].values()) == pytest.approx(1)
    assert topic["confidence"] == topic["probabilities"]["hello"]
    assert answer["usage"] == {"input_tokens": None, "output_tokens": 0}


async def test_a_choice_that_should_not_be_trusted_is_marked(
    program: httpx2.AsyncClient, name: str, topics: Classifier
) -> None:
    await Run.objects.filter(classifier=topics).aupdate(thresholds={"unsure": 1, "kept": 1})
    body = {"model": name, "state": [{"role": "user", "content": GREETING}], "questions": TOPIC}
    topic = (await program.post("/v1/systemone", json=body)).json()["answers"]["topic"]
    assert (topic["choice"], topic["gate"]) == ("hello", "unsure")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"criteria": {"hello": None, "spam": None}}, "“spam”. It was trained on"),
        ({"type": "noul"}, "type `choice` alone"),
        ({"criteria": {}}, "needs `criteria`"),
        ({"criteria": ["hello"]}, "needs `criteria`"),
    ],
)
async def test_a_question_it_cannot_answer_is_told(
    body: dict[str, object], why: str, program: httpx2.AsyncClient, name: str
) -> None:
    questions = {"topic": {"type": "choice", **body}}
    asked = {"model": name, "state": "x", "questions": questions}
    answer = await program.post("/v1/systemone", json=asked)
    assert answer.status_code == 400
    assert why in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"state": "x"}, "`questions`"),
        ({"questions": TOPIC}, "`state`"),
        ({"state": {"a": "x", "b": "y"}, "questions": TOPIC}, "`state`"),
        ({"state": "x", "files": ["a.png"], "questions": TOPIC}, "`files`"),
    ],
)
async def test_a_request_without_text_or_question_is_told(
    body: dict[str, object], why: str, program: httpx2.AsyncClient, name: str
) -> None:
    answer = await program.post("/v1/systemone", json={"model": name, **body})
    assert answer.status_code == 400
    assert why in answer.json()["error"]["message"]
