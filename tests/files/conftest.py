"""A folder for uploads of each test's own."""

from pathlib import Path

import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def _own_uploads(settings: Settings, tmp_path: Path) -> None:
    settings.UPLOADS_DIR = tmp_path / "uploads"
