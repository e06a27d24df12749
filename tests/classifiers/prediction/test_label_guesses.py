"""Guesses for a row that is being labelled, on a real embedding server."""

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from apps.datasets import hooks
from apps.datasets.models import Dataset
from apps.embeddings.background_saves import wait_until_saved
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from tests.classifiers import factories

pytestmark = pytest.mark.django_db(transaction=True)


def guess(dataset: Dataset, text: str) -> hooks.Guesses | None:
    async def call() -> hooks.Guesses | None:
        try:
            return await hooks.guess_labels(dataset, text)
        finally:
            await wait_until_saved()
            await close_clients()
            await close_async_redis()

    return async_to_sync(call)()


def test_guesses_come_from_the_live_version_of_the_dataset(
    alice: User, embedding_server: Server
) -> None:
    dataset = factories.trained(alice).dataset
    assert dataset is not None
    found = guess(dataset, "HELLO THERE GOOD MORNING 99")
    assert found is not None
    assert found.by == "Topics, version 1"
    assert found.labels[0][0] == "hello"
    shares = [share for _, share in found.labels]
    assert shares == sorted(shares, reverse=True)
    factories.exchange_embedding_model()
    assert guess(dataset, "HELLO THERE GOOD MORNING 98") is None


def test_without_a_trained_classifier_there_are_no_guesses(alice: User) -> None:
    assert guess(factories.dataset(alice), "hello") is None
