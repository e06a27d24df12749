"""Permits, on a real Redis: never more than fit."""

import asyncio
import math
from contextlib import suppress

import pytest

from apps.llm import errors, permits
from apps.llm.events import Usage
from apps.llm.permits import Lane
from apps.llm.permits.refusals import FIRST_PAUSE_SECONDS
from apps.runtime.redis import async_redis
from apps.servers.models import Server
from apps.servers.services import hold_slot, slot_terms
from tests.llm.permits.gauge import (
    PATIENCE,
    Gauge,
    a_server,
    a_swapping_server,
    cancel,
    later,
    until_held,
    until_row_refused,
)
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("loop_closed", "nobody_stays")


# --- The limit -----------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 4])
async def test_never_more_than_there_are_slots(width: int) -> None:
    gauge = Gauge(a_server(width), overlap=width)
    people = [gauge.hold(Lane.INTERACTIVE, person=number) for number in range(6)]
    await asyncio.gather(*people, *(gauge.row() for _ in range(12)))
    assert gauge.most == width
    assert sum((await permits.permits_in_flight(7)).values()) == 0


async def test_the_batch_fills_every_slot_while_nobody_chats() -> None:
    gauge = Gauge(a_server(4), overlap=4)
    await asyncio.gather(*(gauge.row() for _ in range(12)))
    assert (gauge.most, gauge.taken) == (4, 0)


async def test_servers_do_not_share_slots() -> None:
    other = Server(pk=8, stored_facts={"slots": 1})
    async with hold_slot(a_server(1), lane=Lane.BATCH), hold_slot(other, lane=Lane.BATCH):
        assert (await permits.permits_in_flight(7))[Lane.BATCH] == 1


async def test_models_with_slots_of_their_own_do_not_share_them() -> None:
    server = a_swapping_server("red", "blue", width=1)
    async with (
        hold_slot(server, lane=Lane.BATCH, model="red"),
        hold_slot(server, lane=Lane.BATCH, model="blue"),
    ):
        assert (await permits.permits_in_flight(7))[Lane.BATCH] == 2


# --- One context for all -------------------------------------------------------------


async def test_what_is_in_flight_stays_within_a_shared_context() -> None:
    server = a_server(4, pool=1000)
    gauge = Gauge(server, overlap=2)
    await asyncio.gather(*(gauge.row(tokens=400) for _ in range(6)))
    assert gauge.most == 2


async def test_a_request_larger_than_the_shared_context_goes_alone() -> None:
    gauge = Gauge(a_server(4, pool=1000))
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(gauge.row(tokens=5000) for _ in range(3)))
    assert gauge.most == 1


async def test_a_question_makes_room_in_a_shared_context() -> None:
    server = a_server(4, pool=1000)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(tokens=300, forever=True)) for _ in range(3)]
    await until_held(server, batch=3)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE, tokens=400):
        await until_held(server, batch=2, interactive=1)
    assert gauge.taken == 1
    await cancel(*rows)


# --- A server that refuses -----------------------------------------------------------


async def test_a_refusal_takes_a_slot_away_and_time_brings_it_back() -> None:
    server = a_server(4)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(forever=True)) for _ in range(4)]
    await until_held(server, batch=4)
    await permits.back_off(slot_terms(server), errors.Busy("Too many parallel requests."))
    seen = await permits.read_occupancy(slot_terms(server))
    assert (seen.limit, seen.limit_reason) == (3, "Too many parallel requests.")
    most = permits.RECOVER_SECONDS + FIRST_PAUSE_SECONDS
    assert 0 < (seen.limit_seconds or 0) <= most
    await cancel(rows.pop())
    again = asyncio.create_task(gauge.row(forever=True))
    await until_row_refused(server)
    assert gauge.now == 3
    await later(server, int(most))
    await until_held(server, batch=4)
    assert (await permits.read_occupancy(slot_terms(server))).limit is None
    await cancel(again, *rows)


async def test_a_server_may_say_how_long_it_wants_to_be_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.llm.permits.terms.RECOVER_SECONDS", 0.001)
    server = a_server(2)
    async with hold_slot(server, lane=Lane.BATCH), hold_slot(server, lane=Lane.BATCH):
        await permits.back_off(slot_terms(server), errors.Busy("Wait.", retry_after=60))
        assert (await permits.read_occupancy(slot_terms(server))).limit == 1


async def pause_of(server: Server) -> float:
    """How long rows are told to wait now, in seconds."""
    with pytest.raises(errors.Busy) as caught:
        async with hold_slot(server, lane=Lane.INTERACTIVE):
            pass
    assert str(caught.value) == "Rate limit reached."
    return caught.value.retry_after or 0


async def refuse(server: Server, retry_after: float | None = None) -> None:
    with suppress(errors.Busy):
        async with hold_slot(server, lane=Lane.BATCH):
            raise errors.Busy("Rate limit reached.", retry_after)


async def test_pauses_grow_until_a_request_is_answered() -> None:
    server, pauses = a_server(4), []
    for _ in range(8):
        await refuse(server)
        pauses.append(await pause_of(server))
        await later(server, math.ceil(pauses[-1]))
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60], abs=0.9)
    async with hold_slot(server, lane=Lane.BATCH) as held:
        held.record_usage(Usage(10, 0, 10))
    await refuse(server)
    assert await pause_of(server) == pytest.approx(1, abs=0.9)


async def test_what_the_server_says_counts() -> None:
    server = a_server(4)
    await refuse(server, retry_after=360)
    assert await pause_of(server) == pytest.approx(360, abs=5)
    row = asyncio.create_task(Gauge(server).row())
    refusal = await until_row_refused(server)
    assert permits.describe_backoff(refusal).endswith(" s. Rate limit reached.")
    await cancel(row)


async def test_refusals_at_the_same_time_are_one() -> None:
    server = a_server(4)
    async with asyncio.TaskGroup() as group:
        go = asyncio.Event()

        async def refused() -> None:
            with suppress(errors.Busy):
                async with hold_slot(server, lane=Lane.BATCH):
                    await go.wait()
                    raise errors.Busy("Rate limit reached.")

        for _ in range(4):
            group.create_task(refused())
        await until_held(server, batch=4)
        go.set()
    assert await pause_of(server) <= 1


async def test_an_overflowed_context_halves_the_width() -> None:
    server = a_server(8)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(forever=True)) for _ in range(8)]
    await until_held(server, batch=8)
    await permits.back_off(slot_terms(server), errors.PoolExhausted("All were ended."))
    assert (await permits.read_occupancy(slot_terms(server))).limit == 4
    await cancel(*rows)


# --- What is shown -------------------------------------------------------------------


async def redis_milliseconds() -> int:
    seconds, microseconds = await async_redis().time()
    return int(seconds * 1000 + microseconds // 1000)


async def test_the_occupancy_names_who_holds_a_slot() -> None:
    server = a_server(4)
    row = hold_slot(server, lane=Lane.BATCH, label="Reviews v2", model="demo", tokens=300, owner=3)
    async with row:
        began = await redis_milliseconds()

        async def is_later() -> bool:  # their order is by the millisecond
            return await redis_milliseconds() > began

        await until(is_later)
        async with hold_slot(server, lane=Lane.INTERACTIVE, label="Chat", person=5):
            seen = await permits.read_occupancy(slot_terms(server))
    assert [(entry.lane, entry.label, entry.owner, entry.tokens) for entry in seen.held] == [
        ("batch", "Reviews v2", 3, 300),
        ("interactive", "Chat", 5, 0),
    ]


async def test_what_requests_cost_is_counted() -> None:
    server = a_server(1)
    for _ in range(2):
        async with hold_slot(server, lane=Lane.BATCH) as held:
            held.record_usage(Usage(prompt_tokens=100, cached_tokens=80, completion_tokens=20))
    async with hold_slot(server, lane=Lane.BATCH):
        pass  # nothing is known of it
    buckets = await permits.usage_history(server.pk, minutes=1)
    assert len(buckets) == 6
    assert [b.start for b in buckets] == sorted(b.start for b in buckets)
    total = [
        sum(getattr(b, name) for b in buckets)
        for name in ("requests", "prompt", "cached", "completion")
    ]
    assert total == [2, 200, 160, 40]
