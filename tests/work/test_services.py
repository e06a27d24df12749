"""Tasks from the queue to their end, each worker a call of `run`."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from apps.work import services, tasks
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.lease import HeldTask, claim
from apps.work.models import Task, TaskState
from tests.work.conftest import KIND, Work

pytestmark = pytest.mark.django_db(transaction=True)

Handler = Callable[[Work], None]


def queued(subject: object = 1, **options: object) -> Task:
    task = services.enqueue(KIND, subject, **options)  # type: ignore[arg-type]
    assert task is not None
    return task


def lapse(task: Task) -> None:
    """As if its worker had died long ago."""
    past = timezone.now() - timedelta(minutes=5)
    Task.objects.filter(pk=task.pk, lease_until__isnull=False).update(lease_until=past)
    Task.objects.filter(pk=task.pk).update(enqueued_at=past)


def test_enqueue_announces_after_the_commit(sent: list[int], alice: User) -> None:
    with transaction.atomic():
        task = queued(owner=alice, options={"rows": 3})
        assert sent == []
    assert sent == [task.pk]
    assert (task.state, task.owner, task.options) == (TaskState.QUEUED, alice, {"rows": 3})


def test_enqueue_announces_nothing_after_a_rollback(sent: list[int]) -> None:
    with transaction.atomic():
        queued()
        transaction.set_rollback(True)
    assert sent == []
    assert not Task.objects.exists()


def test_enqueue_of_an_active_subject_returns_none(sent: list[int], handler: Handler) -> None:
    first = queued()
    assert services.enqueue(KIND, 1) is None
    handler(lambda held: seen.append(services.enqueue(KIND, 1)))
    seen: list[Task | None] = []
    services.run(first.pk)
    assert seen == [None]
    assert sent == [first.pk]


def test_enqueue_of_an_ended_subject_starts_afresh(sent: list[int], handler: Handler) -> None:
    def fail(held: HeldTask) -> None:
        held.report(3, 4)
        held.end(TaskState.FAILED, "No rows.")

    handler(fail)
    services.run(queued().pk)
    again = queued(options={"second": True})
    assert (again.state, again.error, again.done, again.attempts) == ("queued", "", 0, 0)
    assert (again.started, again.finished, again.options) == (None, None, {"second": True})
    assert sent == [again.pk] * 2


def test_enqueue_survives_a_broker_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(task_id: int) -> None:
        raise OperationalError

    monkeypatch.setattr(tasks.run_task, "delay", refuse)
    assert queued().state == TaskState.QUEUED


def test_run_ends_a_task_whose_handler_returns(sent: list[int], handler: Handler) -> None:
    subjects: list[str] = []
    handler(lambda held: subjects.append(held.subject))
    task = queued("seven")
    tasks.run_task(task.pk)
    task.refresh_from_db()
    assert subjects == ["seven"]
    assert (task.state, task.attempts, task.lease) == (TaskState.DONE, 1, None)
    assert task.started is not None
    assert task.finished is not None


def test_run_of_a_second_message_does_nothing(sent: list[int], handler: Handler) -> None:
    calls: list[str] = []
    handler(lambda held: calls.append(held.subject))
    task = queued()
    services.run(task.pk)
    services.run(task.pk)
    services.run(task.pk + 99)
    assert calls == ["1"]


def test_run_keeps_the_outcome_the_handler_wrote(sent: list[int], handler: Handler) -> None:
    handler(lambda held: held.end(TaskState.FAILED, "The label column is empty."))
    task = queued()
    services.run(task.pk)
    task.refresh_from_db()
    assert (task.state, task.error) == (TaskState.FAILED, "The label column is empty.")


def test_run_fails_a_task_with_a_bug_and_shows_no_internals(
    sent: list[int], handler: Handler
) -> None:
    def broken(held: HeldTask) -> None:
        raise RuntimeError("secret")

    handler(broken)
    task = queued()
    with pytest.raises(RuntimeError):
        services.run(task.pk)
    task.refresh_from_db()
    assert (task.state, task.error) == (TaskState.FAILED, services.INTERNAL_ERROR)


def test_run_of_an_unknown_kind_fails_the_task(sent: list[int]) -> None:
    task = services.enqueue("tests.nobody", 1)
    assert task is not None
    with pytest.raises(KeyError):
        services.run(task.pk)
    task.refresh_from_db()
    assert task.state == TaskState.FAILED


def test_cancel_of_a_waiting_task_ends_it_at_once(sent: list[int], handler: Handler) -> None:
    calls: list[str] = []
    handler(lambda held: calls.append(held.subject))
    task = queued()
    assert services.cancel(task)
    services.run(task.pk)
    task.refresh_from_db()
    assert (task.state, calls) == (TaskState.CANCELLED, [])
    assert task.finished is not None


def test_cancel_of_a_running_task_stops_it_at_the_next_report(
    sent: list[int], handler: Handler
) -> None:
    steps: list[int] = []

    def count(held: HeldTask) -> None:
        for step in range(5):
            if step == 2:
                assert not services.cancel(held.task)
            held.report(step, 5)
            steps.append(step)

    handler(count)
    task = queued()
    services.run(task.pk)
    task.refresh_from_db()
    assert steps == [0, 1]
    assert (task.state, task.done, task.total) == (TaskState.CANCELLED, 2, 5)


def test_cancel_of_an_ended_task_changes_nothing(sent: list[int], handler: Handler) -> None:
    task = queued()
    services.run(task.pk)
    assert not services.cancel(task)
    task.refresh_from_db()
    assert (task.state, task.cancel_requested) == (TaskState.DONE, False)


def test_cancel_reaches_the_worker_that_resumes(sent: list[int], handler: Handler) -> None:
    """The worker died between the request and its next check."""
    handler(lambda held: held.check())
    task = queued()
    assert claim(task.pk) is not None
    assert not services.cancel(task)
    lapse(task)
    services.run(task.pk)
    task.refresh_from_db()
    assert task.state == TaskState.CANCELLED


def test_sweep_announces_a_lost_message_once(sent: list[int], handler: Handler) -> None:
    task = queued()
    assert services.sweep() == []  # its message may still be on the way
    lapse(task)
    tasks.sweep()
    tasks.sweep()
    assert sent == [task.pk] * 2


def test_sweep_leaves_living_workers_and_ended_tasks_alone(
    sent: list[int], handler: Handler
) -> None:
    held, done = queued("held"), queued("done")
    assert claim(held.pk) is not None
    services.run(done.pk)
    Task.objects.update(enqueued_at=timezone.now() - timedelta(minutes=5))
    assert services.sweep() == []


def test_a_task_whose_worker_died_is_done_by_the_next(sent: list[int], handler: Handler) -> None:
    task = queued()
    dead = claim(task.pk)
    assert dead is not None
    services.run(task.pk)  # a message that comes twice: the lease is alive
    lapse(task)
    assert services.sweep() == [task.pk]
    services.run(task.pk)
    task.refresh_from_db()
    assert (task.state, task.attempts) == (TaskState.DONE, 2)
    with pytest.raises(LeaseLost):
        dead.report(1, 2)


def test_discard_stops_the_worker_of_a_deleted_subject(sent: list[int], handler: Handler) -> None:
    def deleted(held: HeldTask) -> None:
        services.discard(KIND, [held.subject])
        held.check()

    handler(deleted)
    kept = queued("kept")
    services.run(queued("deleted").pk)
    assert list(Task.objects.all()) == [kept]


def test_enqueue_without_repeat_keeps_what_is_done(sent: list[int], handler: Handler) -> None:
    task = queued()
    services.run(task.pk)
    assert services.enqueue(KIND, 1, repeat=False) is None
    Task.objects.update(state=TaskState.FAILED)
    assert services.enqueue(KIND, 1, repeat=False) == task


def test_start_here_holds_a_task_that_a_worker_resumes(sent: list[int], handler: Handler) -> None:
    held = services.start_here(KIND, 1)
    assert held is not None
    assert services.start_here(KIND, 1) is None
    assert sent == []
    lapse(held.task)  # this process died
    assert services.sweep() == [held.task.pk]
    services.run(held.task.pk)
    with pytest.raises(LeaseLost):
        held.report(1, 2)


def test_claim_cancelled_gives_a_waiting_task_to_the_caller(sent: list[int]) -> None:
    held = services.claim_cancelled(queued())
    assert held is not None
    with pytest.raises(TaskCancelled):
        held.check()


def test_claim_cancelled_leaves_a_running_task_to_its_worker(sent: list[int]) -> None:
    held = claim(queued().pk)
    assert held is not None
    assert services.claim_cancelled(held.task) is None
    with pytest.raises(TaskCancelled):
        held.check()


def test_claim_cancelled_of_an_ended_task_gives_nothing(sent: list[int], handler: Handler) -> None:
    task = queued()
    services.run(task.pk)
    assert services.claim_cancelled(task) is None


def test_forget_failure_deletes_only_a_failed_task(sent: list[int], handler: Handler) -> None:
    task = queued()
    services.forget_failure(KIND, 1)
    assert Task.objects.filter(pk=task.pk).exists()
    Task.objects.update(state=TaskState.FAILED)
    services.forget_failure(KIND, 1)
    assert not Task.objects.exists()


def test_wait_reason_counts_the_tasks_that_run(sent: list[int]) -> None:
    task, *others = queued(0), queued(1), queued(2)
    assert services.wait_reason(task) == "Waiting for a worker."
    held = claim(others[0].pk)
    assert held is not None
    assert services.wait_reason(task) == "Waiting for a free worker: 1 other task runs."
    assert claim(others[1].pk) is not None
    assert services.wait_reason(task) == "Waiting for a free worker: 2 other tasks run."
    assert services.wait_reason(held.task) == ""


def test_is_registered_knows_the_kinds(handler: Handler) -> None:
    assert services.is_registered(KIND)
    assert not services.is_registered("tests.nobody")
