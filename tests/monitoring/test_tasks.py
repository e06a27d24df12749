"""The periodic task, as a worker runs it."""

import pytest

from apps.monitoring.models import Sample
from apps.monitoring.tasks import take_samples
from apps.servers.models import Server, State


@pytest.mark.django_db(transaction=True)
def test_the_task_probes_servers_that_nobody_asks_and_samples_them() -> None:
    gone = Server.objects.create(name="Gone", base_url="http://127.0.0.1:9/v1")
    take_samples()
    gone.refresh_from_db()
    assert gone.state == State.UNREACHABLE
    sample = Sample.objects.get(server=gone, step=30)
    assert (sample.readings, sample.away) == (1, 1)
