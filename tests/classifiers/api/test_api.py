"""Classifiers over HTTP, as a program sees them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.prediction import predictor_file
from apps.classifiers.prediction.predictor import Predictor
from apps.datasets.models import Dataset
from apps.llm.permits.keys import permit_key
from apps.runtime.redis import sync_redis
from apps.servers.models import Server
from apps.work.models import Task
from tests.classifiers import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _server(embedding_server: Server) -> None:
    pass


@pytest.fixture
def topics(alice: User) -> Dataset:
    return factories.dataset(alice)


def test_a_training_that_waits_says_why(
    api: Client, browser: Client, topics: Dataset, announced: list[int]
) -> None:
    made = post(api, "/classifiers", {"name": "Topics", "dataset": topics.pk}).json()
    Run.objects.update(status=Status.EMBEDDING)
    Task.objects.update(total=36)
    path = f"/api/v1/classifiers/{made['id']}"
    assert api.get(path).json()["progress"]["reason"] == ""
    server = Classifier.objects.get().server_id
    assert server is not None
    sync_redis().set(permit_key(server, "wait-reason"), "model:alpha", px=60_000)
    reason = "Waiting: alpha is in use, and the server would have to unload it."
    assert api.get(path).json()["progress"]["reason"] == reason
    page = browser.get(reverse("classifiers:detail", args=[made["id"]])).content.decode()
    assert reason in page


def post(client: Client, path: str, body: Any) -> Any:
    return factories.post(client, f"/api/v1{path}", body, content_type="application/json")


def test_create_queues_a_run_and_reports_its_result(
    api: Client, topics: Dataset, announced: list[int]
) -> None:
    answer = post(api, "/classifiers", {"name": "Topics", "dataset": topics.pk})
    assert answer.status_code == 202
    made = answer.json()
    assert made["run"]["status"] == "queued"
    assert announced == [Run.objects.get(pk=made["run"]["id"]).task_id]
    path = f"/api/v1/classifiers/{made['id']}"
    assert api.get(path).json()["progress"]["stage"] == "queued"
    assert post(api, f"/classifiers/{made['id']}/predict", {"texts": ["x"]}).status_code == 409

    factories.train(Run.objects.get())
    shown = api.get(path).json()
    assert shown["status"] == "ready"
    assert {"accuracy", "macro_f1", "log_loss", "ece"} <= set(shown["metrics"])
    assert shown["confusion"]["labels"] == ["card", "hello", "rate"]
    assert shown["version"] == 1

    texts = ["HELLO THERE GOOD MORNING 77", "what exchange rate do you give for euro amount 88"]
    found = post(api, f"/classifiers/{made['id']}/predict", {"texts": texts}).json()
    assert [prediction["label"] for prediction in found["predictions"]] == ["hello", "rate"]
    for prediction in found["predictions"]:
        assert isinstance(prediction["score"], float)
        assert prediction["top"][0] == {k: prediction[k] for k in ("label", "confidence")}
        assert sum(ranked["confidence"] for ranked in prediction["top"]) == pytest.approx(1)
    assert found["version"] == 1


def test_training_again_over_the_api(api: Client, alice: User, announced: list[int]) -> None:
    made = factories.classifier(alice)
    first = post(api, f"/classifiers/{made.pk}/train", {})
    assert first.status_code == 202
    assert first.json()["id"] == factories.newest(made).pk
    assert api.post(f"/api/v1/classifiers/{made.pk}/cancel").status_code == 202
    assert factories.newest(made).status == "cancelled"
    assert api.delete(f"/api/v1/classifiers/{made.pk}").status_code == 204
    assert not Classifier.objects.exists()


def test_api_hides_classifiers_of_others(
    bobs_api: Client, api: Client, alice: User, topics: Dataset
) -> None:
    made = factories.classifier(alice, topics)
    path = f"/classifiers/{made.pk}"
    answers = [
        bobs_api.get(f"/api/v1{path}"),
        bobs_api.delete(f"/api/v1{path}"),
        post(bobs_api, f"{path}/train", {}),
        post(bobs_api, f"{path}/cancel", {}),
        post(bobs_api, f"{path}/predict", {"texts": ["x"]}),
        post(bobs_api, "/classifiers", {"name": "x", "dataset": topics.pk}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 6
    assert bobs_api.get("/api/v1/classifiers").json()["items"] == []
    theirs = factories.dataset(User.objects.get(username="bob"))
    body = {"name": "x", "dataset": topics.pk, "test_dataset": theirs.pk}
    assert post(api, "/classifiers", body).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "", "dataset": 1},
        {"name": " ", "dataset": 1},
        {"name": "x", "dataset": "many"},
        {"name": "x", "dataset": 1, "options": {"seed": -1}},
    ],
)
def test_classifier_api_refuses_bad_bodies(api: Client, body: Any) -> None:
    assert post(api, "/classifiers", body).status_code == 422


def test_a_test_set_cannot_be_the_training_set(api: Client, topics: Dataset) -> None:
    body = {"name": "x", "dataset": topics.pk, "test_dataset": topics.pk}
    assert post(api, "/classifiers", body).status_code == 422


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([], ""),
        (["x"] * 1001, ""),
        (["fine", "  "], "Text 2 is empty"),
        (["x" * 100_001], "100,000 characters"),
        (["\ud800"], "surrogate"),
        (["fine", "long " * 1500], "tokens"),
    ],
)
def test_predict_api_refuses_bad_texts(
    api: Client, alice: User, texts: list[str], says: str
) -> None:
    made = factories.trained(alice)
    answer = post(api, f"/classifiers/{made.pk}/predict", {"texts": texts})
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


def test_another_embedding_model_is_refused(api: Client, alice: User) -> None:
    made = factories.trained(alice)
    factories.exchange_embedding_model()
    answer = post(api, f"/classifiers/{made.pk}/predict", {"texts": ["x"]})
    assert answer.status_code == 409
    assert answer.json()["code"] == "model_changed"


def test_a_lost_file_and_a_lost_server_are_said(
    api: Client, alice: User, settings: Settings
) -> None:
    made = factories.trained(alice)
    Server.objects.update(base_url="http://127.0.0.1:9/v1", checked_at=None)
    answer = post(api, f"/classifiers/{made.pk}/predict", {"texts": ["never seen"]})
    assert (answer.status_code, answer.json()["code"]) == (502, "unreachable")
    assert made.current is not None
    predictor_file.remove(Path(settings.CLASSIFIERS_DIR), made.current.artefact)
    predictor_file.load.cache_clear()
    answer = post(api, f"/classifiers/{made.pk}/predict", {"texts": ["x"]})
    assert (answer.status_code, answer.json()["code"]) == (503, "no_artefact")


def test_without_an_embedding_server_it_says_where_to_add_one(api: Client, topics: Dataset) -> None:
    Server.objects.all().delete()
    answer = post(api, "/classifiers", {"name": "x", "dataset": topics.pk})
    assert answer.status_code == 503
    assert "Servers" in answer.json()["detail"]


def test_the_list_asks_the_same_number_of_queries(
    api: Client, alice: User, topics: Dataset, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for count in (1, 9):
        for _ in range(count):
            factories.classifier(alice, topics)
        api.get("/api/v1/classifiers")  # notes the key's use
        with django_assert_max_num_queries(2):  # the key with its user, the classifiers
            api.get("/api/v1/classifiers")


def test_a_prediction_asks_the_database_three_times(
    api: Client, alice: User, topics: Dataset, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    path = f"/classifiers/{factories.trained(alice, topics).pk}/predict"
    first = post(api, path, {"texts": ["HELLO again"]}).json()  # notes the key's use, too
    # The key with its user, the classifier with its run, the vectors.
    with django_assert_max_num_queries(3):
        assert post(api, path, {"texts": ["HELLO again"]}).json() == first


def test_predict_of_many_texts_does_not_block_the_event_loop(
    api: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.trained(alice)
    threads: list[bool] = []
    score_texts = Predictor.score_texts

    def watched(self: Predictor, *given: Any, **more: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            threads.append(True)
        else:
            threads.append(False)
        return score_texts(self, *given, **more)

    monkeypatch.setattr(Predictor, "score_texts", watched)
    path = f"/api/v1/classifiers/{made.pk}/predict"
    for count in (1, 40):
        body = {"texts": [f"hello {number}" for number in range(count)]}
        answer = factories.post(api, path, body, content_type="application/json")
        assert len(answer.json()["predictions"]) == count
    assert threads == [False, True]
