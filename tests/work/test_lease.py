"""Who may write to a task: the worker whose token it carries, and nobody else."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from apps.work import lease, services
from apps.work.errors import LeaseLost
from apps.work.lease import HeldTask, claim
from apps.work.models import Task, TaskState
from tests.work.conftest import KIND

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def task(sent: list[int]) -> Task:
    made = services.enqueue(KIND, 1)
    assert made is not None
    return made


def held_by_nobody_alive(task: Task) -> HeldTask:
    """A lease whose worker has not written for long."""
    held = claim(task.pk)
    assert held is not None
    Task.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    return held


def test_claim_gives_one_worker_the_task(task: Task) -> None:
    held = claim(task.pk)
    assert held is not None
    assert held.task.state == TaskState.RUNNING
    assert claim(task.pk) is None


def test_claim_keeps_the_first_start(task: Task) -> None:
    first = held_by_nobody_alive(task)
    second = claim(task.pk)
    assert second is not None
    assert second.task.started == first.task.started


@pytest.mark.parametrize("state", [TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED])
def test_claim_of_an_ended_task_gives_nothing(task: Task, state: TaskState) -> None:
    Task.objects.update(state=state)
    assert claim(task.pk) is None


def test_is_worn_out_after_three_dead_workers(task: Task) -> None:
    for _ in range(lease.MAX_ATTEMPTS):
        assert not held_by_nobody_alive(task).is_worn_out
    assert held_by_nobody_alive(task).is_worn_out


def test_fence_commits_the_subject_with_the_task(task: Task, alice: User) -> None:
    held = claim(task.pk)
    assert held is not None
    with held.fence(done=4, total=9):
        User.objects.filter(pk=alice.pk).update(first_name="Alice")
    task.refresh_from_db()
    alice.refresh_from_db()
    assert (task.done, task.total, alice.first_name) == (4, 9, "Alice")


def test_fence_keeps_out_a_worker_that_was_thought_dead(task: Task, alice: User) -> None:
    dead = held_by_nobody_alive(task)
    living = claim(task.pk)
    assert living is not None
    with pytest.raises(LeaseLost), dead.fence(done=1):
        User.objects.filter(pk=alice.pk).update(first_name="Mallory")
    alice.refresh_from_db()
    assert alice.first_name == ""
    with living.fence(done=2):
        pass
    task.refresh_from_db()
    assert task.done == 2


def test_fence_rolls_back_with_its_block(task: Task) -> None:
    held = claim(task.pk)
    assert held is not None
    with pytest.raises(ZeroDivisionError), held.fence(done=7):
        raise ZeroDivisionError
    task.refresh_from_db()
    assert task.done == 0


def test_end_is_refused_to_a_worker_that_lost_the_lease(task: Task) -> None:
    dead = held_by_nobody_alive(task)
    assert claim(task.pk) is not None
    with pytest.raises(LeaseLost):
        dead.end(TaskState.FAILED, "late")
    task.refresh_from_db()
    assert (task.state, task.error) == (TaskState.RUNNING, "")


def test_release_gives_the_task_to_the_next_worker(task: Task) -> None:
    held = claim(task.pk)
    assert held is not None
    held.release()
    task.refresh_from_db()
    assert task.state == TaskState.QUEUED
    assert claim(task.pk) is not None


def test_end_happens_once(task: Task) -> None:
    held = claim(task.pk)
    assert held is not None
    held.end(TaskState.DONE)
    with pytest.raises(LeaseLost):
        held.end(TaskState.FAILED)


def test_a_held_task_renews_its_lease_during_a_long_step(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    held = held_by_nobody_alive(task)
    with held:
        while not Task.objects.filter(pk=task.pk, lease_until__gt=timezone.now()).exists():
            pass
    held.check()


def test_the_renewing_ends_when_the_lease_is_lost(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    held = claim(task.pk)
    assert held is not None
    with held:
        services.discard(KIND, [1])
    with pytest.raises(LeaseLost):
        held.check()
