"""A trained classifier answers with its label as text, through OpenAI's SDK."""

import json
import math

import httpx2
import openai  # noqa: TID251 - a program that asks us
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from apps.classifiers.models import Classifier, Run
from apps.core.models import ApiKey
from apps.gateway.application import Gateway
from apps.gateway.models import Usage
from apps.gateway.usage import store
from apps.servers.models import Server
from tests.classifiers import factories
from tests.gateway.own_models.conftest import ASKED, GREETING
from tests.gateway.test_openai_sdk import sdk_with

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_counters")]


async def test_label_is_the_text_of_a_completion(sdk: openai.AsyncOpenAI, name: str) -> None:
    for model in (name, "classifier/Topics"):
        answer = await sdk.chat.completions.create(model=model, messages=ASKED)  # type: ignore[arg-type]
        [choice] = answer.choices
        assert (choice.message.content, choice.finish_reason) == ("hello", "stop")
        assert (answer.model, answer.usage, choice.logprobs) == (name, None, None)


async def test_label_comes_as_a_stream(sdk: openai.AsyncOpenAI, name: str) -> None:
    stream = await sdk.chat.completions.create(model=name, messages=ASKED, stream=True)  # type: ignore[arg-type]
    chunks = [chunk async for chunk in stream]  # type: ignore[union-attr]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "hello"
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_logprobs_are_the_calibrated_probabilities(
    sdk: openai.AsyncOpenAI, name: str
) -> None:
    answer = await sdk.chat.completions.create(
        model=name,
        messages=ASKED,  # type: ignore[arg-type]
        logprobs=True,
        top_logprobs=20,
    )
    assert answer.choices[0].logprobs is not None
    [token] = answer.choices[0].logprobs.content or []
    assert (token.token, len(token.top_logprobs)) == ("hello", 3)
    assert sum(math.exp(one.logprob) for one in token.top_logprobs) == pytest.approx(1, abs=1e-4)


async def test_a_label_that_should_not_be_trusted_is_marked(
    sdk: openai.AsyncOpenAI, name: str, topics: Classifier
) -> None:
    await Run.objects.filter(classifier=topics).aupdate(thresholds={"unsure": 1, "kept": 1})
    answer = await sdk.chat.completions.create(model=name, messages=ASKED)  # type: ignore[arg-type]
    [choice] = answer.choices
    assert choice.message.content == "hello"
    assert (choice.model_extra or {})["gate"] == "unsure"


async def test_nobody_else_can_ask_it(
    sdk: openai.AsyncOpenAI, name: str, gateway: Gateway, bob: User
) -> None:
    _, other = await sync_to_async(ApiKey.issue)(user=bob, name="b")
    async with sdk_with(other, gateway) as theirs:
        for model in (name, "classifier/Topics"):
            with pytest.raises(openai.NotFoundError, match="You have no classifier"):
                await theirs.chat.completions.create(model=model, messages=ASKED)  # type: ignore[arg-type]


async def test_its_id_survives_another_name(
    sdk: openai.AsyncOpenAI, name: str, topics: Classifier, alice: User
) -> None:
    await Classifier.objects.filter(pk=topics.pk).aupdate(name="Intents")
    for model in (name, "classifier/Intents"):
        await sdk.chat.completions.create(model=model, messages=ASKED)  # type: ignore[arg-type]
    with pytest.raises(openai.NotFoundError, match="You have classifier/"):
        await sdk.chat.completions.create(model="classifier/Topics", messages=ASKED)  # type: ignore[arg-type]
    twin = await Classifier.objects.acreate(
        owner=alice, name="Intents", options={}, current_id=topics.current_id
    )
    with pytest.raises(openai.BadRequestError, match=f"classifier/{twin.pk}, {name}"):
        await sdk.chat.completions.create(model="classifier/Intents", messages=ASKED)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("chat/completions", {"messages": []}, "`messages` has none"),
        ("chat/completions", {"messages": [{"role": "user", "content": [{}]}]}, "text alone"),
        ("chat/completions", {"n": [2]}, "Leave out `n`"),
        ("chat/completions", {"response_format": {"type": "json_object"}}, "label as text"),
        ("chat/completions", {"top_logprobs": True}, "`top_logprobs`"),
        ("completions", {"prompt": "Hello"}, "A classifier answers /v1/chat/completions"),
        ("embeddings", {"input": "Hello"}, "A classifier answers /v1/chat/completions"),
    ],
)
async def test_what_it_cannot_do_is_told(
    path: str, body: dict[str, object], why: str, program: httpx2.AsyncClient, name: str
) -> None:
    answer = await program.post(f"/v1/{path}", json={"model": name, "messages": ASKED, **body})
    assert answer.status_code == 400
    assert why in answer.json()["error"]["message"]


async def test_who_was_never_trained_says_so(
    program: httpx2.AsyncClient, few_fits: None, embedding_server: Server, alice: User
) -> None:
    made = await sync_to_async(factories.classifier)(alice)
    body = {"model": f"classifier/{made.pk}", "messages": ASKED}
    answer = await program.post("/v1/chat/completions", json=body)
    assert answer.status_code == 404
    assert "not trained yet" in answer.json()["error"]["message"]


async def test_a_name_that_no_text_can_have_is_unknown(program: httpx2.AsyncClient) -> None:
    body = json.dumps({"model": "classifier/\ud800", "messages": ASKED})
    answer = await program.post("/v1/chat/completions", content=body)
    assert answer.status_code == 404
    assert "You have no classifier" in answer.json()["error"]["message"]


async def test_an_embedding_server_that_is_away_is_told(
    program: httpx2.AsyncClient, name: str, embedding_server: Server
) -> None:
    embedding_server.base_url = "http://127.0.0.1:9/v1"
    await embedding_server.asave(update_fields=["base_url"])
    body = {"model": name, "messages": [{"role": "user", "content": "something new"}]}
    answer = await program.post("/v1/chat/completions", json=body)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert "embedding server" in answer.json()["error"]["message"]


async def test_limits_of_the_key_hold(sdk: openai.AsyncOpenAI, name: str) -> None:
    key = await ApiKey.objects.aget()
    key.allowed_models = ["qwen3"]
    await key.asave()
    with pytest.raises(openai.PermissionDeniedError, match="Allowed: qwen3"):
        await sdk.chat.completions.create(model=name, messages=ASKED)  # type: ignore[arg-type]
    key.allowed_models, key.requests_per_minute = ["classifier/Topics"], 1
    await key.asave()
    await sdk.chat.completions.create(model=name, messages=ASKED)  # type: ignore[arg-type]
    with pytest.raises(openai.RateLimitError, match="1 request a minute"):
        await sdk.chat.completions.create(model=name, messages=ASKED)  # type: ignore[arg-type]


@pytest.mark.parametrize("lane", ["person", "agent", "batch", "idle"])
async def test_every_lane_has_an_answer_and_is_counted(
    lane: str, program: httpx2.AsyncClient, name: str
) -> None:
    text = [{"role": "user", "content": f"{GREETING} {lane}"}]
    body = {"model": name, "messages": text}
    answer = await program.post(
        "/v1/chat/completions", json=body, headers={"X-Workbench-Lane": lane}
    )
    assert answer.status_code == 200
    assert answer.json()["usage"] is None
    await sync_to_async(store.store_usage)()
    row = await Usage.objects.aget(model=name)
    assert (row.requests, row.failed, row.prompt_reports, row.waits) == (1, 0, 0, 0)
