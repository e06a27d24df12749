"""The derived fields of runs and files, without a worker."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from apps.classifiers.models import (
    LARGE_FIELDS,
    Classifier,
    FilePrediction,
    FileStatus,
    Run,
    Status,
)
from apps.work.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def classifier(alice: User) -> Classifier:
    return Classifier.objects.create(owner=alice, name="Topics")


def run_of(classifier: Classifier, *, done: int = 0, total: int = 0, **fields: object) -> Run:
    task = Task.objects.create(kind="tests", subject=str(fields), done=done, total=total)
    return Run.objects.create(classifier=classifier, number=1, task=task, **fields)  # type: ignore[misc]


def test_progress_is_that_of_the_task(classifier: Classifier) -> None:
    run = run_of(classifier, done=3, total=9)
    assert (run.done, run.total, run.cancel_requested) == (3, 9, False)
    Task.objects.update(cancel_requested=True)
    assert Run.objects.get().cancel_requested
    assert (Run(classifier=classifier).done, Run(classifier=classifier).total) == (0, 0)


@pytest.mark.parametrize("status", Status)
def test_is_active_and_is_ready_follow_the_status(classifier: Classifier, status: Status) -> None:
    run = Run(classifier=classifier, status=status)
    ended = {Status.READY, Status.FAILED, Status.CANCELLED}
    assert run.is_active == (status not in ended)
    assert run.is_ready == (status == Status.READY)
    assert list(Run.objects.active()) == []


def test_eta_goes_by_the_rate_of_the_stage(classifier: Classifier) -> None:
    now = timezone.now()
    begun = now - timedelta(seconds=10)
    run = run_of(classifier, done=5, total=20, status=Status.EMBEDDING, stage_started=begun)
    assert run.eta(now) == pytest.approx(30)
    assert run.rate == pytest.approx(0.5, rel=0.2)


@pytest.mark.parametrize(
    ("done", "status", "has_begun"),
    [(0, Status.EMBEDDING, True), (5, Status.READY, True), (5, Status.EMBEDDING, False)],
)
def test_eta_is_unknown_until_there_is_a_rate(
    classifier: Classifier, done: int, status: Status, has_begun: bool
) -> None:
    begun = timezone.now() if has_begun else None
    run = run_of(classifier, done=done, total=20, status=status, stage_started=begun)
    assert (run.eta(), run.rate) == (None, None)


@pytest.mark.parametrize(
    ("status", "states"),
    [
        (Status.QUEUED, ["later", "later", "later"]),
        (Status.EMBEDDING, ["now", "later", "later"]),
        (Status.EVALUATING, ["done", "done", "now"]),
        (Status.READY, ["done", "done", "done"]),
    ],
)
def test_stages_show_where_a_run_is(
    classifier: Classifier, status: Status, states: list[str]
) -> None:
    run = Run(classifier=classifier, status=status, seconds={"embedding": 2.5})
    assert [stage["state"] for stage in run.stages] == states
    assert run.stages[0]["seconds"] == 2.5


def test_duration_is_known_once_it_ended(classifier: Classifier) -> None:
    begun = timezone.now()
    run = Run(classifier=classifier, started=begun)
    assert run.duration is None
    run.finished = begun + timedelta(seconds=4)
    assert run.duration == 4


@pytest.mark.parametrize(("rows", "shown"), [(99, None), (100, 0.04)])
def test_ece_is_shown_with_enough_test_rows(
    classifier: Classifier, rows: int, shown: float | None
) -> None:
    run = Run(classifier=classifier, metrics={"rows": rows, "ece": 0.04, "accuracy": 0.9})
    assert (run.ece, run.accuracy, run.macro_f1) == (shown, 0.9, None)


def test_for_lists_leaves_out_what_only_the_page_shows(classifier: Classifier) -> None:
    run_of(classifier, metrics={"accuracy": 1})
    listed = Run.objects.for_lists().get()
    assert listed.get_deferred_fields() == set(LARGE_FIELDS)
    assert listed.accuracy == 1


def test_a_classifier_has_one_active_run(classifier: Classifier) -> None:
    from django.db import IntegrityError, transaction

    run_of(classifier)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.create(classifier=classifier, number=2)
    Run.objects.update(status=Status.FAILED)
    assert Run.objects.create(classifier=classifier, number=2).is_active


def test_files_have_names_of_their_own(classifier: Classifier) -> None:
    run = run_of(classifier)
    file = FilePrediction.objects.create(classifier=classifier, run=run, file_name="a.csv")
    assert (str(file), file.artefact) == ("a.csv", f"file-{file.pk}")
    assert (str(run), run.artefact) == ("Topics v1", f"run-{run.pk}")
    assert file.is_active
    file.status = FileStatus.READY
    assert file.is_ready
