"""A stack for each session, the workbench in front of it, and the table of what was seen."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from apps.classifiers.training import trainer
from apps.embeddings.background_saves import wait_until_saved
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.work.tasks import run_task
from tests.backends import programs
from tests.backends.backend import Backend
from tests.backends.model_files import ModelFiles, write_models
from tests.backends.process import LOG_CHARACTERS
from tests.backends.stacks import all_stacks
from tests.backends.table import Table
from tests.backends.workbench import Workbench, workbench_of

TABLE = Table()


@pytest.fixture(scope="session")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    return write_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    """The stack that the test names, running; only one at a time does."""
    stack = all_stacks()[request.param]
    for name in stack.programs:
        programs.command(name)
    models, folder = request.getfixturevalue("model_files"), tmp_path_factory.mktemp("stack")
    with stack.open(folder, models) as running:
        running.folder = folder
        yield running


@pytest.fixture
def driver(
    backend: Backend,
    alice: User,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Workbench:
    alice.is_staff = True
    alice.save()
    settings.IDLE_AFTER_CHAT_SECONDS = 0
    settings.CLASSIFIERS_DIR = tmp_path / "classifiers"
    settings.CA_FILE = backend.ca_file
    monkeypatch.setattr(trainer, "STRENGTHS", (3.0, 10.0, 30.0))
    monkeypatch.setattr(trainer, "FOLDS", 3)
    monkeypatch.setattr("apps.chat.answering.runner.LINGER_SECONDS", 0)
    monkeypatch.setattr(run_task, "delay", lambda task: None)  # a test does it itself
    return workbench_of(alice)


@pytest.fixture
async def workbench(driver: Workbench) -> AsyncIterator[Workbench]:
    yield driver
    await wait_until_saved()
    await close_clients()
    await close_async_redis()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "check" in callspec.params:
        report = outcome.get_result()  # type: ignore[attr-defined]
        TABLE.record(callspec.params["backend"], callspec.params["check"], report)
        if report.failed and "backend" in item.funcargs:  # type: ignore[attr-defined]
            running: Backend = item.funcargs["backend"]  # type: ignore[attr-defined]
            for log in sorted(running.folder.glob("*.log")):
                said = log.read_text(errors="replace")[-LOG_CHARACTERS:]
                report.sections.append((log.name, said))


def pytest_sessionfinish() -> None:
    if document := os.environ.get("WORKBENCH_TEST_BACKEND_TABLE"):
        TABLE.write_into(Path(document))
