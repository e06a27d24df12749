"""Classifying from a conversation, on a real embedding server."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from apps.classifiers.chat_tools import classify_text
from apps.core.tools import ToolError
from apps.embeddings.background_saves import wait_until_saved
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from tests.classifiers import factories

pytestmark = pytest.mark.django_db(transaction=True)


def classify(user: User, **arguments: Any) -> str:
    async def call() -> str:
        try:
            return await classify_text(user, arguments)
        finally:
            await wait_until_saved()
            await close_clients()
            await close_async_redis()

    return async_to_sync(call)()


def test_classify_tool_lists_a_label_for_each_text(alice: User, embedding_server: Server) -> None:
    factories.trained(alice)
    texts = ["HELLO THERE GOOD MORNING 99", "what exchange rate do you give for euro amount 7"]
    said = classify(alice, classifier="topics", texts=texts).splitlines()
    assert said[0].startswith("1. hello (")
    assert said[1].startswith("2. rate (")


def test_classify_tool_says_why_it_cannot_classify(
    alice: User, bob: User, embedding_server: Server
) -> None:
    factories.classifier(alice)
    with pytest.raises(ToolError, match="no trained classifier"):
        classify(bob, classifier="Topics", texts=["x"])
    with pytest.raises(ToolError, match=r"(?i)train"):
        classify(alice, classifier="Topics", texts=["x"])
    with pytest.raises(ToolError, match="Text 1 is empty"):
        classify(alice, classifier="Topics", texts=[" "])
