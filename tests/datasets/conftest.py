"""A folder for uploads of each test's own, nobody else's hooks, no workers: this room by itself."""

from pathlib import Path

import pytest
from pytest_django import Settings

from apps.datasets import hooks, near_duplicates
from apps.work.tasks import run_task


@pytest.fixture(autouse=True)
def _by_itself(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.UPLOADS_DIR = tmp_path / "uploads"
    monkeypatch.setattr(hooks, "text_limit_providers", [])
    monkeypatch.setattr(near_duplicates, "is_search_available", lambda: False)


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tasks announced to the workers, in order. Tests run them themselves."""
    found: list[int] = []
    monkeypatch.setattr(run_task, "delay", found.append)
    return found
