"""How a task of this room ends: with results, with a reason, or cancelled."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from apps.tuning.errors import SweepError
from apps.tuning.runs.run_stored import run_stored
from apps.tuning.runs.services import CANCELLED, LOST
from apps.work.errors import TaskCancelled
from apps.work.models import TaskState
from apps.work.services import HeldTask

pytestmark = pytest.mark.django_db(transaction=True)


class Ends:
    """What was written down at the end."""

    def __init__(self, *, is_worn_out: bool = False) -> None:
        self.stored: list[int] = []
        self.reasons: list[str] = []
        self.states: list[tuple[Any, str]] = []
        self.held = cast(
            HeldTask,
            SimpleNamespace(is_worn_out=is_worn_out, check=lambda: None, end=self._end_task),
        )

    def _end_task(self, state: Any, text: str) -> None:
        self.states.append((state, text))

    def run(self, error: Exception | None = None) -> None:
        async def work() -> int:
            if error is not None:
                raise error
            return 7

        asyncio.run(run_stored(self.held, work, store=self.stored.append, end=self.reasons.append))


def test_results_are_stored_and_the_task_ends_by_itself() -> None:
    ends = Ends()
    ends.run()
    assert (ends.stored, ends.reasons, ends.states) == ([7], [], [])


def test_an_error_is_the_reason_of_run_and_task() -> None:
    ends = Ends()
    ends.run(SweepError("No slot."))
    assert (ends.stored, ends.reasons) == ([], ["No slot."])
    assert ends.states == [(TaskState.FAILED, "No slot.")]


def test_a_task_whose_workers_all_ended_is_lost_and_does_not_run() -> None:
    ends = Ends(is_worn_out=True)
    ends.run(AssertionError("it ran"))
    assert (ends.stored, ends.reasons) == ([], [LOST])
    assert ends.states == [(TaskState.FAILED, LOST)]


def test_a_cancelled_run_says_so_and_its_task_hears_of_it() -> None:
    ends = Ends()
    with pytest.raises(TaskCancelled):
        ends.run(TaskCancelled())
    assert (ends.stored, ends.reasons, ends.states) == ([], [CANCELLED], [])
