"""What a width meter measures is used at once and kept with the server."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.runtime.async_db import in_db
from apps.servers.facts.server_facts import MeasuredWidth
from apps.servers.models import Kind, Server
from apps.servers.services import WidthMeter, refresh_server, slot_terms
from apps.servers.slots import width_meter
from tests.servers.conftest import server_at
from tests.standins import Standin

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(db: None) -> Server:
    facts = {"models": [{"id": "m", "aliases": ["alias"]}]}
    return Server.objects.create(
        name="s", base_url="http://s/v1", kind=Kind.OPENAI, stored_facts=facts
    )


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(width_meter, "time", clock)
    return clock


def answer(clock: Clock, meter: WidthMeter, server: Server, model: str = "m") -> None:
    """Answer every request after a second, whatever the width, for eight seconds."""
    for _ in range(8):
        requests = range(meter.width(server, model))
        for request in requests:
            meter.started(server, model, request)
        clock.now += 1
        for request in requests:
            meter.finished(server, model, request, 20)


async def test_permits_follow_at_once_and_other_processes_after_save(
    server: Server, clock: Clock
) -> None:
    meter = WidthMeter()
    assert meter.width(server, "m") == 4
    answer(clock, meter, server, "alias")
    width = meter.width(server, "alias")
    assert width > 4
    assert slot_terms(server, "alias").slots == width
    stored = await in_db(Server.objects.get)
    assert stored.slots_of("m") == 4
    await meter.save(server)
    stored = await in_db(Server.objects.get)
    assert (stored.slots_of("m"), stored.slots_source("m")) == (width, "measured")


async def test_a_refusal_makes_it_less(server: Server) -> None:
    meter = WidthMeter()
    meter.started(server, "m", 1)
    meter.dropped(server, "m", 1, refused=True)
    assert (meter.width(server, "m"), server.slots_of("m")) == (2, 2)


@pytest.mark.parametrize(("age_days", "goes_on"), [(0, False), (2, True)])
async def test_a_stored_width_is_measured_again_after_a_day(
    server: Server, clock: Clock, age_days: int, goes_on: bool
) -> None:
    at = (timezone.now() - timedelta(days=age_days)).isoformat()
    server.facts.measured_widths["m"] = MeasuredWidth(9, at, "it was fastest", is_settled=True)
    meter = WidthMeter()
    answer(clock, meter, server)
    assert (meter.width(server, "m") > 9) == goes_on


def test_nothing_is_measured_where_the_owner_has_set_the_slots(
    server: Server, clock: Clock
) -> None:
    server.parallel = 3
    meter = WidthMeter()
    answer(clock, meter, server)
    meter.dropped(server, "m", 1, refused=True)
    assert meter.width(server, "m") == 3
    assert not server.facts.measured_widths


async def test_a_measured_width_outlasts_a_refresh(clock: Clock) -> None:
    with Standin("saturating", None) as standin:
        server = await refresh_server(await in_db(server_at, standin))
        meter = WidthMeter()
        answer(clock, meter, server)
        await meter.save(server)
        server = await refresh_server(await in_db(Server.objects.get), max_age=timedelta(0))
        assert server.slots_source("m") == "measured"
