"""Servers that are not llama-server: stand-ins in front of the real one."""

from collections.abc import AsyncIterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from apps.core.redis import close_async_redis
from apps.llm.client import close_clients
from apps.llm.models import Server
from tests.llama_process import LlamaProcess
from tests.standins import Standin


@pytest.fixture
def staff_browser(carol: User) -> Client:
    """carol, who may change servers, logged in."""
    client = Client()
    client.force_login(carol)
    return client


@pytest.fixture
async def loop_closed() -> AsyncIterator[None]:
    """What a loop of ours does last."""
    yield
    await close_clients()
    await close_async_redis()


def server_at(standin: Standin, key: str = "", **fields: object) -> Server:
    server = Server(name=standin.kind, base_url=standin.base_url, **fields)
    server.set_key(key)
    server.save()
    return server


@pytest.fixture
def idle_slots(llama: LlamaProcess) -> None:
    """For tests that look at them: those before it share the server."""
    llama.wait_until_idle()


@pytest.fixture
def nobody_stays(settings: Settings) -> None:
    """People are gone as soon as their answer is there, but where a test says otherwise."""
    settings.IDLE_AFTER_CHAT_SECONDS = 0
