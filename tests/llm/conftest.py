import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def staff_browser(carol: User) -> Client:
    """carol, who may change servers, logged in."""
    client = Client()
    client.force_login(carol)
    return client
