"""A trained classifier of alice, on a real embedding server."""

from collections.abc import AsyncIterator
from pathlib import Path

import openai  # noqa: TID251 - a program that asks us
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from apps.classifiers.models import Classifier
from apps.classifiers.training import trainer
from apps.gateway.application import Gateway
from apps.servers.models import Server
from apps.work.tasks import run_task
from tests.classifiers import factories
from tests.gateway.test_openai_sdk import sdk_with

GREETING = "HELLO THERE GOOD MORNING 99"
ASKED = [{"role": "system", "content": "Sort mail."}, {"role": "user", "content": GREETING}]


@pytest.fixture
def few_fits(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CLASSIFIERS_DIR = tmp_path / "classifiers"
    monkeypatch.setattr(trainer, "STRENGTHS", (3.0, 10.0))
    monkeypatch.setattr(trainer, "FOLDS", 2)
    monkeypatch.setattr(run_task, "delay", lambda task: None)


@pytest.fixture
def topics(few_fits: None, alice: User, embedding_server: Server) -> Classifier:
    """Knows the labels card, rate and hello."""
    return factories.trained(alice)


@pytest.fixture
def name(topics: Classifier) -> str:
    return f"classifier/{topics.pk}"


@pytest.fixture
async def sdk(token: str, gateway: Gateway, loop_closed: None) -> AsyncIterator[openai.AsyncOpenAI]:
    async with sdk_with(token, gateway) as client:
        yield client
