from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.classifiers import predictor


@pytest.fixture(autouse=True)
def _own_folder(settings: Settings, tmp_path: Path) -> Iterator[None]:
    """Each test starts with an empty database, and so with run 1: it needs a folder of its own."""
    settings.CLASSIFIERS_DIR = tmp_path / "classifiers"
    yield
    predictor.load.cache_clear()
