"""Servers that are not llama-server: stand-ins in front of the real one."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.core.models import ApiKey
from apps.servers.models import Server
from tests.standins import Standin


@pytest.fixture
def staff_browser(carol: User) -> Client:
    """carol, who may change servers, logged in."""
    client = Client()
    client.force_login(carol)
    return client


@pytest.fixture
def staff_api(carol: User) -> Client:
    """The API with a key of carol."""
    _, token = ApiKey.issue(user=carol, name="tests")
    return Client(headers={"authorization": f"Bearer {token}"})


def server_at(standin: Standin, key: str = "", **fields: object) -> Server:
    server = Server(**{"name": standin.kind, "base_url": standin.base_url, **fields})
    server.set_key(key)
    server.save()
    return server
