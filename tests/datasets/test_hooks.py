"""Functions that other rooms provide to this one."""

import pytest
from django.contrib.auth.models import User

from apps.datasets import hooks
from apps.datasets.hooks import TextLimit
from tests.datasets import factories


@pytest.fixture(autouse=True)
def _no_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "text_limit_providers", [])
    monkeypatch.setattr(hooks, "trained_on_providers", [])


def test_text_limit_is_unknown_without_a_provider() -> None:
    assert hooks.text_limit() is None


def test_text_limit_is_that_of_the_last_provider() -> None:
    hooks.register_text_limit(lambda: TextLimit("old", 128))
    hooks.register_text_limit(lambda: TextLimit("new", 512))
    limit = hooks.text_limit()
    assert limit == TextLimit("new", 512)
    assert limit is not None
    assert limit.characters == 2_048


def test_is_trained_on_asks_the_provider(alice: User) -> None:
    dataset = factories.create(alice, [("one", "a")])
    assert not hooks.is_trained_on(dataset, 7)
    hooks.register_trained_on(lambda found, key: (found, key) == (dataset, 7))
    assert hooks.is_trained_on(dataset, 7)
    assert not hooks.is_trained_on(dataset, 8)
