"""Examinations as durable tasks."""

import pytest
from django.contrib.auth.models import User

from apps.servers.models import Server
from apps.tuning.doctor.examination import Examination
from apps.tuning.errors import DoctorError
from apps.tuning.models import MOST_RUNS, DoctorRun
from apps.tuning.runs import doctor_services
from apps.tuning.runs.doctor_services import active_examination, start_examination
from apps.tuning.runs.services import LOST
from apps.tuning.runs.task_kind import DOCTOR
from apps.work import services as work
from apps.work.models import Task, TaskState
from tests.llama_process import free_port

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def away() -> Server:
    return Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")


def test_one_examination_of_a_server_at_a_time(away: Server, carol: User) -> None:
    run = start_examination(away, carol)
    assert active_examination(away) == run
    with pytest.raises(DoctorError, match="“Away” is being examined already"):
        start_examination(away, carol)
    assert DoctorRun.objects.count() == 1


def test_only_the_latest_examinations_are_kept(away: Server) -> None:
    for _ in range(MOST_RUNS + 2):
        last = DoctorRun.objects.create(server=away)
        doctor_services.delete_old_runs(away)
    assert DoctorRun.objects.count() == MOST_RUNS
    assert DoctorRun.objects.first() == last


def test_an_examination_whose_task_is_gone_is_ended(away: Server) -> None:
    run = DoctorRun.objects.create(server=away)
    doctor_services.end_lost_runs(away)
    run.refresh_from_db()
    assert (run.error, run.ended is not None) == (LOST, True)


def test_a_server_that_does_not_answer_was_not_examined(away: Server, carol: User) -> None:
    run = start_examination(away, carol)
    work.run_subject(DOCTOR, away.pk)
    run.refresh_from_db()
    [one] = run.examinations
    assert (one.is_examined, one.findings) == (False, [])
    assert one.notes
    assert run.ended is not None
    assert Task.objects.get(kind=DOCTOR).state == TaskState.DONE


@pytest.mark.usefixtures("idle_slots")
def test_a_worker_stores_what_it_measured(server: Server, carol: User) -> None:
    run = start_examination(server, carol)
    work.run_subject(DOCTOR, server.pk)
    run.refresh_from_db()
    [one] = run.examinations
    names = {measurement.name for measurement in one.measurements}
    assert {"Slots", "First token of a new prompt", "Known prompt, from the cache"} <= names
    assert isinstance(one, Examination)
    assert active_examination(server) is None
