"""The periodic task, as a worker runs it."""

from datetime import timedelta

import pytest

from apps.chat.answering import turn
from apps.monitoring import tasks
from apps.monitoring.models import Sample
from apps.monitoring.tasks import take_samples
from apps.servers.models import Server, State
from workbench.schedule import BEAT_SCHEDULE


@pytest.mark.django_db(transaction=True)
def test_the_task_probes_servers_that_nobody_asks_and_samples_them() -> None:
    gone = Server.objects.create(name="Gone", base_url="http://127.0.0.1:9/v1")
    take_samples()
    gone.refresh_from_db()
    assert gone.state == State.UNREACHABLE
    sample = Sample.objects.get(server=gone, step=30)
    assert (sample.readings, sample.away) == (1, 1)


def test_samples_keep_facts_fresh_enough_that_no_question_waits_for_a_probe() -> None:
    between_samples = timedelta(seconds=float(str(BEAT_SCHEDULE["take-samples"]["schedule"])))
    oldest = tasks.FACTS_AGE + 2 * between_samples  # one sample may be missed
    assert oldest <= turn.FACTS_AGE
