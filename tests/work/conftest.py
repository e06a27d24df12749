from collections.abc import Callable, Iterator

import pytest

from apps.work import services, tasks
from apps.work.lease import HeldTask

KIND = "tests.count"

Work = Callable[[HeldTask], None]
_current: list[Work] = []


def handle(held: HeldTask) -> None:
    """The handler of KIND: whatever the running test put in place."""
    _current[-1](held)


@pytest.fixture
def handler() -> Iterator[Callable[[Work], None]]:
    """Sets what a worker does with a task of KIND; nothing until then."""
    services.register(KIND, "tests.work.conftest.handle")
    _current.append(lambda held: None)
    yield _current.append
    _current.clear()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tasks announced to Celery."""
    announced: list[int] = []
    monkeypatch.setattr(tasks.run_task, "delay", announced.append)
    return announced
