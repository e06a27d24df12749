"""When a sweep may measure, and when it must stop."""

import asyncio
from typing import Any

import pytest

from apps.llm.errors import ServerFailed
from apps.llm.permits import Lane, Occupancy, Permit, PermitInfo
from apps.servers.models import Server
from apps.servers.services import Target, hold_slot, refresh_server
from apps.tuning.sweep.measuring.slots import LABEL, IdleSlots, InUse, is_idle


def permit(lane: str = Lane.IDLE, label: str = LABEL) -> PermitInfo:
    return PermitInfo(lane=lane, label=label, model="m", owner=None, tokens=9, seconds=1.0)


def occupancy(*held: PermitInfo, **fields: Any) -> Occupancy:
    nothing: dict[str, Any] = {
        **{"waiting": [], "people": 0, "limit": None, "limit_reason": ""},
        **{"limit_seconds": None, "wait_reason": ""},
    }
    return Occupancy(held=list(held), **(nothing | fields))


@pytest.mark.parametrize(
    ("found", "width", "expected"),
    [
        (occupancy(), 0, True),
        (occupancy(permit(), permit()), 2, True),
        (occupancy(permit()), 4, True),
        # Another sweep, a person, a row, the doctor, somebody who waits, reads or was refused.
        (occupancy(permit(), permit()), 1, False),
        (occupancy(permit(Lane.INTERACTIVE, "")), 4, False),
        (occupancy(permit(Lane.BATCH, "Job 1")), 4, False),
        (occupancy(permit(label="Doctor")), 4, False),
        (occupancy(permit("revoked")), 4, False),
        (occupancy(waiting=[permit("waiting", "")]), 4, False),
        (occupancy(people=1), 4, False),
        (occupancy(limit=2), 4, False),
    ],
)
def test_server_is_idle_if_nobody_but_this_sweep_uses_it(
    found: Occupancy, width: int, expected: bool
) -> None:
    assert is_idle(found, width) is expected


@pytest.fixture
async def slots(server: Server, nobody_stays: None, loop_closed: None) -> IdleSlots:
    known = await refresh_server(server)
    return IdleSlots(Target(known, known.model_ids[0]))


async def answer(held: Permit) -> str:
    return held.name


async def forever(held: Permit) -> str:
    await asyncio.Event().wait()
    return held.name


async def fail(held: Permit) -> str:
    raise ServerFailed("It broke.")


@pytest.mark.django_db(transaction=True)
async def test_works_run_each_in_a_slot_of_its_own(slots: IdleSlots) -> None:
    assert len(set(await slots.run([answer] * 3, 10))) == 3


@pytest.mark.django_db(transaction=True)
async def test_works_without_end_are_cancelled_after_what_they_are_for(slots: IdleSlots) -> None:
    done = asyncio.Event()
    done.set()

    async def until() -> None:
        await done.wait()

    assert await slots.run([forever] * 2, 10, until) == []
    assert await slots.run([answer] * 4, 10) != []


@pytest.mark.django_db(transaction=True)
async def test_more_works_than_idle_slots_are_in_use(slots: IdleSlots) -> None:
    async with hold_slot(slots.target.server, lane=Lane.BATCH):
        with pytest.raises(InUse):
            await slots.run([forever] * 4, 10)


@pytest.mark.django_db(transaction=True)
async def test_person_on_another_slot_ends_all_works(slots: IdleSlots) -> None:
    begun = asyncio.Event()

    async def begin(held: Permit) -> str:
        begun.set()
        return await forever(held)

    running = asyncio.create_task(slots.run([begin], 10))
    await begun.wait()
    async with hold_slot(slots.target.server, lane=Lane.INTERACTIVE, person=1):
        with pytest.raises(InUse):
            await running


@pytest.mark.django_db(transaction=True)
async def test_error_of_one_work_closes_the_others_and_is_raised(slots: IdleSlots) -> None:
    with pytest.raises(ServerFailed, match="It broke"):
        await slots.run([forever, fail], 10)
    assert await slots.run([answer] * 4, 10) != []


@pytest.mark.django_db(transaction=True)
async def test_waiting_for_an_idle_server_is_told_once(slots: IdleSlots) -> None:
    told: list[str] = []
    may_go = asyncio.Event()

    async def tell() -> None:
        told.append("waits")
        may_go.set()

    async def person() -> None:
        async with hold_slot(slots.target.server, lane=Lane.INTERACTIVE, person=1):
            begun.set()
            await may_go.wait()

    begun = asyncio.Event()
    busy = asyncio.create_task(person())
    await begun.wait()
    await slots.wait_until_idle(tell)
    await busy
    await slots.wait_until_idle(tell)
    assert told == ["waits"]
