"""Permits: people first."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from pytest_django import Settings

from apps.llm import permits
from apps.llm.permits import Lane, NoSlot, SlotTaken
from apps.llm.permits.permit_holder import PermitHolder, permit_holder
from apps.servers.services import hold_slot, slot_terms
from tests.llm.permits.gauge import (
    PATIENCE,
    Gauge,
    a_server,
    cancel,
    later,
    until_held,
    until_row_refused,
    until_waiting,
)
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("loop_closed", "nobody_stays")


@pytest.fixture(autouse=True)
def _nobody_lapses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the places of those who wait, however seldom a busy machine lets them ask again."""
    monkeypatch.setattr("apps.llm.permits.terms.WAITER_SECONDS", PATIENCE)
    monkeypatch.setattr("apps.llm.permits.terms.LEASE_SECONDS", PATIENCE)
    monkeypatch.setattr("apps.llm.permits.acquire.REDIS_SECONDS", PATIENCE)


async def test_a_question_takes_the_youngest_rows_slot() -> None:
    server = a_server(2)
    gauge = Gauge(server)
    old = asyncio.create_task(gauge.hold(forever=True))
    await until_held(server, batch=1)
    young = asyncio.create_task(gauge.hold(forever=True))
    await until_held(server, batch=2)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE):
        assert gauge.now == 1
        with pytest.raises(SlotTaken):
            await young
    assert not old.done()
    await cancel(old)


async def test_who_can_go_on_gives_its_slot_before_who_would_begin_again() -> None:
    """Among those that would, the youngest: it has the least to lose."""
    server = a_server(4)
    gauge = Gauge(server)
    rows = []
    for number, loses_work in enumerate([False, True, False, True], 1):
        rows.append(asyncio.create_task(gauge.hold(forever=True, loses_work=loses_work)))
        await until_held(server, batch=number)
    taken = []
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as people:
        for person in range(3):
            slot = hold_slot(server, lane=Lane.INTERACTIVE, person=person + 1)
            await people.enter_async_context(slot)
            (ended,) = [n for n, row in enumerate(rows) if row.done() and n not in taken]
            taken.append(ended)
    assert taken == [2, 0, 3]
    assert all(isinstance(rows[number].exception(), SlotTaken) for number in taken)
    await cancel(rows[1])


async def test_a_slot_that_is_free_before_the_process_listens_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.llm.permits.waiters.POLL_SECONDS", PATIENCE)
    server, subscribe = a_server(1), PermitHolder.subscribe
    gauge = Gauge(server)
    first = asyncio.create_task(gauge.hold(Lane.INTERACTIVE, forever=True))
    await until_held(server, interactive=1)

    async def late(holder: PermitHolder, server_id: int) -> bool:
        await cancel(first)
        return await subscribe(holder, server_id)

    monkeypatch.setattr(PermitHolder, "subscribe", late)
    async with asyncio.timeout(PATIENCE / 2), hold_slot(server, lane=Lane.INTERACTIVE):
        assert first.cancelled()


async def test_the_batch_has_all_slots_again_after_the_question() -> None:
    server = a_server(3)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(forever=True)) for _ in range(3)]
    await until_held(server, batch=3)
    async with hold_slot(server, lane=Lane.INTERACTIVE):
        pass
    async with asyncio.timeout(PATIENCE):
        await until_held(server, batch=3)
    assert gauge.taken == 1
    await cancel(*rows)


async def test_on_a_server_with_one_slot_the_row_yields() -> None:
    server = a_server(1)
    gauge = Gauge(server)
    row = asyncio.create_task(gauge.row(forever=True))
    await until_held(server, batch=1)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE):
        assert gauge.now == 0
    await until_held(server, batch=1)
    assert gauge.taken == 1
    await cancel(row)


async def test_a_question_never_takes_the_slot_of_another_question() -> None:
    said: list[str] = []
    server = a_server(1)
    async with hold_slot(server, lane=Lane.INTERACTIVE, person=1):

        async def second() -> None:
            async with hold_slot(
                server, lane=Lane.INTERACTIVE, person=2, on_wait=lambda: said.append("waiting")
            ):
                pass

        waiter = asyncio.create_task(second())
        await until_waiting(server, 1)
        assert not waiter.done()
        assert [
            entry.lane for entry in (await permits.read_occupancy(slot_terms(server))).waiting
        ] == ["waiting"]
    await waiter
    assert said == ["waiting"]


async def test_people_take_turns_however_much_one_of_them_asks() -> None:
    server, order = a_server(1), []

    async def ask(person: int, number: int) -> None:
        async with hold_slot(server, lane=Lane.INTERACTIVE, person=person):
            order.append((person, number))

    tasks: list[asyncio.Task[None]] = []
    async with asyncio.timeout(PATIENCE):
        async with hold_slot(server, lane=Lane.INTERACTIVE, person=1):
            for person, number in [*((1, n) for n in range(30)), (2, 0), (2, 1), (3, 0)]:
                tasks.append(asyncio.create_task(ask(person, number)))
                await until_waiting(server, len(tasks))
        await asyncio.gather(*tasks)
    assert order[:6] == [(2, 0), (3, 0), (1, 0), (2, 1), (1, 1), (1, 2)]
    assert [number for person, number in order if person == 1] == list(range(30))


async def test_who_holds_a_slot_comes_after_who_holds_none() -> None:
    server, order = a_server(2), []

    async def ask(person: int) -> None:
        async with hold_slot(server, lane=Lane.INTERACTIVE, person=person):
            order.append(person)

    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE, person=1):
        async with hold_slot(server, lane=Lane.INTERACTIVE, person=1):
            tasks = []
            for person in (1, 1, 1, 2):
                tasks.append(asyncio.create_task(ask(person)))
                await until_waiting(server, len(tasks))
        await asyncio.gather(*tasks)
    assert order == [2, 1, 1, 1]


async def test_questions_are_let_in_in_their_order() -> None:
    server = a_server(1)
    order: list[int] = []

    async def ask(number: int) -> None:
        async with hold_slot(server, lane=Lane.INTERACTIVE, person=number + 1):
            order.append(number)

    tasks = []
    async with hold_slot(server, lane=Lane.INTERACTIVE), asyncio.timeout(PATIENCE):
        for number in range(6):
            tasks.append(asyncio.create_task(ask(number)))
            await until_waiting(server, number + 1)
    await asyncio.gather(*tasks)
    assert order == sorted(order)


async def test_two_questions_take_two_slots_and_no_more() -> None:
    server = a_server(4)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(forever=True)) for _ in range(4)]
    await until_held(server, batch=4)
    async with (
        hold_slot(server, lane=Lane.INTERACTIVE, person=1),
        hold_slot(server, lane=Lane.INTERACTIVE, person=2),
    ):
        await until_held(server, batch=2, interactive=2)
        await until_row_refused(server)
        assert (gauge.taken, gauge.now) == (2, 2)
    await cancel(*rows)


@pytest.mark.parametrize(("people", "rows"), [(1, 3), (2, 2), (9, 1)])
async def test_rows_leave_a_slot_free_for_everybody_who_is_active(
    people: int, rows: int, settings: Settings
) -> None:
    settings.IDLE_AFTER_CHAT_SECONDS = 20
    gauge = Gauge(a_server(4))
    for number in range(people):
        await gauge.hold(Lane.INTERACTIVE, person=number)
    gauge.most, gauge.overlap = 0, rows
    await asyncio.gather(*(gauge.row() for _ in range(8)))
    assert (gauge.most, gauge.taken) == (rows, 0)
    assert (await permits.read_occupancy(slot_terms(gauge.server))).people == people


async def test_somebody_active_on_a_server_with_one_slot_does_not_stop_the_batch(
    settings: Settings,
) -> None:
    settings.IDLE_AFTER_CHAT_SECONDS = 20
    gauge = Gauge(a_server(1))
    await gauge.hold(Lane.INTERACTIVE)
    await asyncio.wait_for(gauge.row(), PATIENCE)


async def test_the_batch_is_at_full_width_again_when_nobody_is_active(
    settings: Settings,
) -> None:
    settings.IDLE_AFTER_CHAT_SECONDS = 60
    server = a_server(2)
    gauge = Gauge(server)
    await gauge.hold(Lane.INTERACTIVE)
    rows = [asyncio.create_task(gauge.row(forever=True)) for _ in range(2)]
    await until_held(server, batch=1)
    await until_row_refused(server)
    assert gauge.now == 1
    await later(server, 60)
    await until_held(server, batch=2)
    await cancel(*rows)


async def test_slot_stays_free_for_a_person_who_types_until_the_notice_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.llm.permits.occupancy.TYPING_MS", 60_000)
    server = a_server(2)
    gauge = Gauge(server)
    await permits.announce_person(server.pk, 1)
    rows = [asyncio.create_task(gauge.row(forever=True)) for _ in range(2)]
    await until_held(server, batch=1)
    await until_row_refused(server)
    assert gauge.now == 1
    await later(server, 60)
    await until_held(server, batch=2)
    await cancel(*rows)


async def test_idle_lane_takes_an_idle_slot_or_none() -> None:
    server = a_server(2)
    async with hold_slot(server, lane=Lane.BATCH), hold_slot(server, lane=Lane.IDLE):
        with pytest.raises(NoSlot):
            async with hold_slot(server, lane=Lane.IDLE):
                pass


@pytest.mark.parametrize("lane", [Lane.BATCH, Lane.INTERACTIVE])
async def test_idle_lane_yields_to_every_other_lane(lane: Lane) -> None:
    server = a_server(1)
    gauge = Gauge(server)
    spare = asyncio.create_task(gauge.hold(Lane.IDLE, forever=True))
    await until(lambda: gauge.now)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=lane):
        with pytest.raises(SlotTaken):
            await spare


async def test_idle_lane_is_closed_before_a_row() -> None:
    server = a_server(2)
    gauge = Gauge(server)
    spare = asyncio.create_task(gauge.hold(Lane.IDLE, forever=True))
    await until(lambda: gauge.now)
    row = asyncio.create_task(gauge.hold(forever=True))
    await until_held(server, batch=1)
    async with hold_slot(server, lane=Lane.INTERACTIVE):
        assert spare.done()
        assert not row.done()
    await cancel(row, spare)


async def test_who_takes_a_freed_slot_first_has_another_one_freed() -> None:
    server = a_server(2)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.hold(forever=True)) for _ in range(2)]
    await until_held(server, batch=2)
    async with asyncio.timeout(PATIENCE):
        async with hold_slot(server, lane=Lane.INTERACTIVE, person=1):
            again = asyncio.create_task(gauge.hold(Lane.INTERACTIVE, person=1, forever=True))
            async with hold_slot(server, lane=Lane.INTERACTIVE, person=2):
                await until_waiting(server, 1)
            for row in rows:
                with pytest.raises(SlotTaken):
                    await row
        await cancel(again)


async def test_of_many_who_wait_only_the_first_ask_for_each_slot() -> None:
    server = a_server(1)
    gauge = Gauge(server)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE, person=0):
        waiting = [
            asyncio.create_task(gauge.hold(Lane.INTERACTIVE, person=n)) for n in range(1, 31)
        ]
        await until_waiting(server, 30)
    await asyncio.gather(*waiting)
    assert gauge.most == 1


async def test_a_slot_that_is_taken_as_it_is_given_is_free_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message that it is taken may come before the answer that it was given."""
    server, holder = a_server(1), permit_holder()
    gauge, acquire = Gauge(server), holder.acquire

    async def slow(*, keys: list[str], args: list[str]) -> bytes:
        refusal: bytes = await acquire(keys=keys, args=args)
        permit = holder.waiters.find(server.pk, args[0])
        assert permit is not None
        if not refusal and permit.holder is not None:
            await until(lambda: permit.revoked)
        return refusal

    monkeypatch.setattr(holder, "acquire", slow)
    row = asyncio.create_task(gauge.hold(forever=True))
    await until_held(server, batch=1)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE):
        with pytest.raises(SlotTaken):
            await row
    assert gauge.now == 0
