"""A folder for uploads of each test's own, and nobody else's hooks: this room by itself."""

from pathlib import Path

import pytest
from pytest_django import Settings

from apps.datasets import hooks, near_duplicates


@pytest.fixture(autouse=True)
def _by_itself(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.UPLOADS_DIR = tmp_path / "uploads"
    monkeypatch.setattr(hooks, "text_limit_providers", [])
    monkeypatch.setattr(near_duplicates, "is_search_available", lambda: False)
