from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.classifiers.evaluation import row_results
from apps.classifiers.prediction import predictor_file
from apps.classifiers.training import trainer
from apps.work.tasks import run_task


@pytest.fixture(autouse=True)
def _own_folder(settings: Settings, tmp_path: Path) -> Iterator[None]:
    """Each test starts with an empty database, and so with run 1: it needs a folder of its own."""
    settings.CLASSIFIERS_DIR = tmp_path / "classifiers"
    yield
    predictor_file.load.cache_clear()
    row_results.load.cache_clear()


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tasks announced to the workers, in order. Tests run them themselves."""
    found: list[int] = []
    monkeypatch.setattr(run_task, "delay", found.append)
    return found


@pytest.fixture(autouse=True)
def _few_fits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests need a classifier, not the best: 10 fits a run instead of 26."""
    if not request.module.__name__.endswith("test_trainer"):
        monkeypatch.setattr(trainer, "STRENGTHS", (3.0, 10.0, 30.0))
        monkeypatch.setattr(trainer, "FOLDS", 3)
