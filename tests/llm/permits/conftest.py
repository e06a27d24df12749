"""Most servers here are in no database."""

import math

import pytest

from apps.llm.permits import acquire


@pytest.fixture(autouse=True)
def _unsaved_servers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("django_db") is None:
        monkeypatch.setattr(acquire, "TERMS_SECONDS", math.inf)
