"""Batches as their owner creates and finds them."""

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from apps.core.models import ApiKey
from apps.core.quotas import LimitReached
from apps.gateway.batches import lifecycle
from apps.gateway.errors import GatewayError
from tests.gateway.batches.steps import start

pytestmark = pytest.mark.django_db


@pytest.fixture
def key(alice: User) -> ApiKey:
    return ApiKey.issue(user=alice, name="laptop")[0]


def test_endpoint_window_and_number_are_limited(key: ApiKey, settings: Settings) -> None:
    with pytest.raises(GatewayError, match="No batch runs at"):
        start(key, b"{}", endpoint="/v1/images/generations")
    for window in ("soon", "0h", "31d", "24h\n"):
        with pytest.raises(GatewayError, match="a time like"):
            start(key, b"{}", window=window)
    settings.LIMITS = {**settings.LIMITS, "batches": 1}
    assert start(key, b"{}", window="7d").expires
    with pytest.raises(LimitReached, match="1 batches that are not done"):
        start(key, b"{}")


def test_a_batch_is_found_by_its_owner_alone(key: ApiKey, bob: User) -> None:
    batch = start(key, b"{}")
    assert lifecycle.find_batch(key.user, batch.public_id) == batch
    assert lifecycle.find_batch(bob, batch.public_id) is None
    assert lifecycle.find_batch(key.user, "batch_x") is None
