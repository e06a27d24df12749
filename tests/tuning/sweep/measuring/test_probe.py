"""Requests as a job sends them, at a real llama.cpp."""

import pytest

from apps.servers.models import Server
from apps.servers.services import Target, refresh_server
from apps.tuning.sweep.measuring import probe
from apps.tuning.sweep.measuring.probe import JobProbe
from apps.tuning.sweep.measuring.slots import IdleSlots

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "idle_slots", "loop_closed"),
]


@pytest.fixture
async def job_probe(server: Server, monkeypatch: pytest.MonkeyPatch) -> JobProbe:
    monkeypatch.setattr(probe, "SLICE_SECONDS", 0.02)
    known = await refresh_server(server)
    return JobProbe(IdleSlots(Target(known, known.model_ids[0])), 100, 16)


@pytest.mark.parametrize("width", [1, 4])
async def test_rate_is_measured_for_the_seconds_asked_for(job_probe: JobProbe, width: int) -> None:
    rate = await job_probe.measure(width, 300, 0.1)
    assert rate.value > 0
    assert rate.error >= 0


async def test_rate_is_measured_until_it_is_precise(
    job_probe: JobProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "LEAST_SECONDS", 0.05)
    monkeypatch.setattr(probe, "PRECISE_ENOUGH", 1.0)
    rate = await job_probe.measure(2, 300)
    assert 0 <= rate.error <= rate.value
