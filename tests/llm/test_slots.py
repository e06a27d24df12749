"""Permits, on a real Redis."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pytest_django import Settings

from apps.core.redis import async_redis, close_async_redis
from apps.llm import desk, errors, slots
from apps.llm.events import Usage
from apps.llm.models import Kind, Server, State
from apps.llm.slots import Lane, ModelInUse, NoSlot, SlotTaken, permit


@pytest.fixture(autouse=True)
async def _redis() -> AsyncIterator[None]:
    yield
    await close_async_redis()


@pytest.fixture(autouse=True)
def _nobody_stays(settings: Settings) -> None:
    """People are gone as soon as their answer is there, but where a test says otherwise."""
    settings.IDLE_AFTER_CHAT_SECONDS = 0


def a_server(width: int = 4, *, pool: int | None = None) -> Server:
    facts = {"slots": width, "context": pool}
    unified = pool is not None
    return Server(pk=7, kind=Kind.LLAMA_SERVER, state=State.READY, facts=facts, kv_unified=unified)


def a_swapping_server(*loaded: str, width: int = 4) -> Server:
    states = {name: "loaded" if name in loaded else "unloaded" for name in ("red", "blue")}
    models = [{"id": name, "state": state, "slots": width} for name, state in states.items()]
    return Server(pk=7, kind=Kind.LLAMA_SWAP, facts={"slots": width, "models": models})


class Gauge:
    """How many hold a permit, and the most there ever were."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.now = self.most = self.taken = 0

    async def hold(self, lane: Lane = Lane.BATCH, *, seconds: float = 0.02, **claim: Any) -> None:
        async with permit(self.server, lane=lane, **claim):
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.now -= 1

    async def row(self, *, seconds: float = 0.02, **claim: Any) -> None:
        """Starts again when a person took the slot, as the pump does."""
        while True:
            try:
                return await self.hold(Lane.BATCH, seconds=seconds, **claim)
            except SlotTaken:
                self.taken += 1
            except ModelInUse:
                await asyncio.sleep(0.05)


async def settled(server: Server, *, batch: int = 0, interactive: int = 0) -> None:
    """Returns when so many permits are held."""
    async with asyncio.timeout(2):
        while True:
            held = await slots.in_flight(server.pk)
            if (held[Lane.BATCH], held[Lane.INTERACTIVE]) == (batch, interactive):
                return
            await asyncio.sleep(0.005)


async def cancel(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- The limit ------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 4])
async def test_never_more_than_there_are_slots(width: int) -> None:
    gauge = Gauge(a_server(width))
    people = [gauge.hold(Lane.INTERACTIVE, person=number) for number in range(6)]
    await asyncio.gather(*people, *(gauge.row() for _ in range(12)))
    assert gauge.most == width
    assert sum((await slots.in_flight(7)).values()) == 0


async def test_the_batch_fills_every_slot_while_nobody_chats() -> None:
    gauge = Gauge(a_server(4))
    await asyncio.gather(*(gauge.row() for _ in range(12)))
    assert (gauge.most, gauge.taken) == (4, 0)


async def test_servers_do_not_share_slots() -> None:
    other = Server(pk=8, facts={"slots": 1})
    async with permit(a_server(1), lane=Lane.BATCH), permit(other, lane=Lane.BATCH):
        assert (await slots.in_flight(7))[Lane.BATCH] == 1


async def test_models_with_slots_of_their_own_do_not_share_them() -> None:
    server = a_swapping_server("red", "blue", width=1)
    async with (
        permit(server, lane=Lane.BATCH, model="red"),
        permit(server, lane=Lane.BATCH, model="blue"),
    ):
        assert (await slots.in_flight(7))[Lane.BATCH] == 2


# --- People first ---------------------------------------------------------------


async def test_a_question_takes_the_youngest_rows_slot() -> None:
    server = a_server(2)
    gauge = Gauge(server)
    old = asyncio.create_task(gauge.hold(seconds=60))
    await settled(server, batch=1)
    young = asyncio.create_task(gauge.hold(seconds=60))
    await settled(server, batch=2)
    async with asyncio.timeout(1), permit(server, lane=Lane.INTERACTIVE):
        assert gauge.now == 1
        with pytest.raises(SlotTaken):
            await young
    assert not old.done()
    await cancel(old)


async def test_the_batch_has_all_slots_again_after_the_question() -> None:
    server = a_server(3)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(seconds=60)) for _ in range(3)]
    await settled(server, batch=3)
    async with permit(server, lane=Lane.INTERACTIVE):
        pass
    async with asyncio.timeout(1):
        await settled(server, batch=3)
    assert gauge.taken == 1
    await cancel(*rows)


async def test_on_a_server_with_one_slot_the_row_yields() -> None:
    server = a_server(1)
    gauge = Gauge(server)
    row = asyncio.create_task(gauge.row(seconds=0.3))
    await settled(server, batch=1)
    async with asyncio.timeout(0.2), permit(server, lane=Lane.INTERACTIVE):
        assert gauge.now == 0
    await asyncio.wait_for(row, timeout=2)
    assert gauge.taken == 1


async def test_a_question_never_takes_the_slot_of_another_question() -> None:
    said: list[str] = []
    server = a_server(1)
    async with permit(server, lane=Lane.INTERACTIVE, person=1):

        async def second() -> None:
            async with permit(
                server, lane=Lane.INTERACTIVE, person=2, waiting=lambda: said.append("waiting")
            ):
                pass

        waiter = asyncio.create_task(second())
        await asyncio.sleep(0.4)
        assert not waiter.done()
        assert [entry.lane for entry in (await slots.occupancy(server)).waiting] == ["waiting"]
    await waiter
    assert said == ["waiting"]


async def test_questions_are_let_in_in_their_order() -> None:
    server = a_server(1)
    order: list[int] = []

    async def ask(number: int) -> None:
        async with permit(server, lane=Lane.INTERACTIVE, person=number):
            order.append(number)
            await asyncio.sleep(0.01)

    tasks = []
    async with permit(server, lane=Lane.INTERACTIVE), asyncio.timeout(5):
        for number in range(6):
            tasks.append(asyncio.create_task(ask(number)))
            while len((await slots.occupancy(server)).waiting) <= number:
                await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)
    assert order == sorted(order)


async def test_two_questions_take_two_slots_and_no_more() -> None:
    server = a_server(4)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(seconds=60)) for _ in range(4)]
    await settled(server, batch=4)
    async with (
        permit(server, lane=Lane.INTERACTIVE, person=1),
        permit(server, lane=Lane.INTERACTIVE, person=2),
    ):
        await settled(server, batch=2, interactive=2)
        await asyncio.sleep(0.3)
        assert (gauge.taken, gauge.now) == (2, 2)
    await cancel(*rows)


@pytest.mark.parametrize(("people", "rows"), [(1, 3), (2, 2), (9, 1)])
async def test_rows_leave_a_slot_free_for_everybody_who_is_active(
    people: int, rows: int, settings: Settings
) -> None:
    settings.IDLE_AFTER_CHAT_SECONDS = 20
    gauge = Gauge(a_server(4))
    for number in range(people):
        await gauge.hold(Lane.INTERACTIVE, person=number, seconds=0)
    gauge.most = 0
    await asyncio.gather(*(gauge.row() for _ in range(8)))
    assert (gauge.most, gauge.taken) == (rows, 0)
    assert (await slots.occupancy(gauge.server)).people == people


async def test_somebody_active_on_a_server_with_one_slot_does_not_stop_the_batch(
    settings: Settings,
) -> None:
    settings.IDLE_AFTER_CHAT_SECONDS = 20
    gauge = Gauge(a_server(1))
    await gauge.hold(Lane.INTERACTIVE, seconds=0)
    await asyncio.wait_for(gauge.row(), timeout=2)


async def test_the_batch_is_at_full_width_again_when_nobody_is_active(
    settings: Settings,
) -> None:
    settings.IDLE_AFTER_CHAT_SECONDS = 1
    server = a_server(2)
    gauge = Gauge(server)
    await gauge.hold(Lane.INTERACTIVE, seconds=0)
    rows = [asyncio.create_task(gauge.row(seconds=60)) for _ in range(2)]
    await asyncio.sleep(0.3)
    assert gauge.now == 1
    async with asyncio.timeout(1.7):
        await settled(server, batch=2)
    await cancel(*rows)


async def test_spare_work_takes_an_idle_slot_or_none() -> None:
    server = a_server(2)
    async with permit(server, lane=Lane.BATCH), permit(server, lane=Lane.SPARE):
        with pytest.raises(NoSlot):
            async with permit(server, lane=Lane.SPARE):
                pass


@pytest.mark.parametrize("lane", [Lane.BATCH, Lane.INTERACTIVE])
async def test_spare_work_yields_to_everything(lane: Lane) -> None:
    server = a_server(1)
    gauge = Gauge(server)
    spare = asyncio.create_task(gauge.hold(Lane.SPARE, seconds=60))
    while not gauge.now:
        await asyncio.sleep(0.005)
    async with asyncio.timeout(1), permit(server, lane=lane):
        with pytest.raises(SlotTaken):
            await spare


async def test_spare_work_is_closed_before_a_row_is() -> None:
    server = a_server(2)
    gauge = Gauge(server)
    spare = asyncio.create_task(gauge.hold(Lane.SPARE, seconds=60))
    while not gauge.now:
        await asyncio.sleep(0.005)
    row = asyncio.create_task(gauge.hold(seconds=60))
    await settled(server, batch=1)
    async with permit(server, lane=Lane.INTERACTIVE):
        assert spare.done()
        assert not row.done()
    await cancel(row, spare)


# --- One context for all ----------------------------------------------------------


async def test_what_is_in_flight_stays_within_a_shared_context() -> None:
    server = a_server(4, pool=1000)
    gauge = Gauge(server)
    await asyncio.gather(*(gauge.row(tokens=400) for _ in range(6)))
    assert gauge.most == 2


async def test_a_request_larger_than_the_shared_context_goes_alone() -> None:
    gauge = Gauge(a_server(4, pool=1000))
    async with asyncio.timeout(2):
        await asyncio.gather(*(gauge.row(tokens=5000) for _ in range(3)))
    assert gauge.most == 1


async def test_a_question_makes_room_in_a_shared_context() -> None:
    server = a_server(4, pool=1000)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(tokens=300, seconds=60)) for _ in range(3)]
    await settled(server, batch=3)
    async with asyncio.timeout(1), permit(server, lane=Lane.INTERACTIVE, tokens=400):
        await settled(server, batch=2, interactive=1)
    assert gauge.taken == 1
    await cancel(*rows)


# --- Only some models fit at once --------------------------------------------------


async def test_rows_of_another_model_wait_until_those_of_the_loaded_one_are_done() -> None:
    server = a_swapping_server("red")
    async with permit(server, lane=Lane.BATCH, model="red"):
        blue = asyncio.create_task(Gauge(server).row(model="blue"))
        await asyncio.sleep(0.4)
        assert not blue.done()
        assert (await slots.occupancy(server)).held_back == "model:red"
        with pytest.raises(ModelInUse, match="red is in use"):
            async with permit(server, lane=Lane.BATCH, model="blue"):
                pass
    await asyncio.wait_for(blue, timeout=2)


async def test_rows_do_not_push_out_a_model_that_a_person_used_lately(
    settings: Settings,
) -> None:
    settings.KEEP_MODEL_SECONDS = 1
    server = a_swapping_server("red")
    async with permit(server, lane=Lane.INTERACTIVE, model="red"):
        pass
    assert await slots.people_models(server) == {"red"}
    blue = asyncio.create_task(Gauge(server).row(model="blue"))
    await asyncio.sleep(0.4)
    assert not blue.done()
    await asyncio.wait_for(blue, timeout=2)


async def test_a_question_for_another_model_ends_all_rows_in_its_way() -> None:
    server = a_swapping_server("red", width=2)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.hold(model="red", seconds=60)) for _ in range(2)]
    await settled(server, batch=2)
    async with asyncio.timeout(1), permit(server, lane=Lane.INTERACTIVE, model="blue"):
        outcomes = await asyncio.gather(*rows, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [SlotTaken, SlotTaken]


async def test_loaded_models_work_side_by_side() -> None:
    server = a_swapping_server("red", "blue", width=1)
    async with (
        asyncio.timeout(1),
        permit(server, lane=Lane.INTERACTIVE, model="red"),
        permit(server, lane=Lane.BATCH, model="blue"),
    ):
        pass


async def test_spare_work_loads_no_model() -> None:
    with pytest.raises(NoSlot):
        async with permit(a_swapping_server("red"), lane=Lane.SPARE, model="blue"):
            pass


# --- A server that refuses ----------------------------------------------------------


async def test_a_refusal_takes_a_slot_away_and_time_brings_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "RECOVER_SECONDS", 0.3)
    server = a_server(4)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(seconds=60)) for _ in range(4)]
    await settled(server, batch=4)
    await slots.refused(server, "", errors.Busy("Too many parallel requests."))
    seen = await slots.occupancy(server)
    assert (seen.limit, seen.limit_reason) == (3, "Too many parallel requests.")
    assert 0.1 < (seen.limit_seconds or 0) <= 0.3
    await cancel(rows.pop())
    again = asyncio.create_task(gauge.row(seconds=60))
    await asyncio.sleep(0.1)
    assert gauge.now == 3
    await settled(server, batch=4)
    assert (await slots.occupancy(server)).limit is None
    await cancel(again, *rows)


async def test_a_server_may_say_how_long_it_wants_to_be_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "RECOVER_SECONDS", 0.001)
    server = a_server(2)
    async with permit(server, lane=Lane.BATCH), permit(server, lane=Lane.BATCH):
        await slots.refused(server, "", errors.Busy("Wait.", retry_after=60))
        assert (await slots.occupancy(server)).limit == 1


async def test_an_overflowed_context_halves_the_width() -> None:
    server = a_server(8)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.row(seconds=60)) for _ in range(8)]
    await settled(server, batch=8)
    await slots.refused(server, "", errors.PoolExhausted("All were ended."))
    assert (await slots.occupancy(server)).limit == 4
    await cancel(*rows)


# --- What goes wrong ----------------------------------------------------------------


async def test_a_cancelled_holder_leaves_nothing_behind() -> None:
    server = a_server(1)
    holder = asyncio.create_task(Gauge(server).hold(Lane.INTERACTIVE, seconds=60))
    await settled(server, interactive=1)
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    await settled(server)


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    server = a_server(1)
    async with permit(server, lane=Lane.INTERACTIVE):
        waiter = asyncio.create_task(Gauge(server).hold(Lane.INTERACTIVE))
        while not (await slots.occupancy(server)).waiting:
            await asyncio.sleep(0.005)
        await cancel(waiter)
        assert not (await slots.occupancy(server)).waiting


async def test_the_permit_of_a_dead_process_lapses() -> None:
    """A process that is killed neither renews nor gives back."""
    seconds, _ = await async_redis().time()
    dead = dict.fromkeys(("scope", "model", "label", "person"), "") | {"lane": "batch"}
    dead |= {"owner": 0, "tokens": 0, "since": 0, "ends": seconds * 1000 + 1300}
    server = a_server(1)
    await async_redis().hset(desk.key(server.pk), "of a dead process", json.dumps(dead))
    row = asyncio.create_task(Gauge(server).row())
    await asyncio.sleep(0.1)
    assert not row.done()
    await asyncio.wait_for(row, timeout=3)


async def test_a_long_answer_keeps_its_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(desk, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(desk, "RENEW_SECONDS", 0.05)
    server = a_server(1)
    async with permit(server, lane=Lane.BATCH):
        await asyncio.sleep(0.6)
        assert (await slots.in_flight(7))[Lane.BATCH] == 1


async def test_permits_that_redis_lost_are_registered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(desk, "RENEW_SECONDS", 0.05)
    server = a_server(1)
    async with permit(server, lane=Lane.INTERACTIVE):
        await async_redis().flushall()
        await asyncio.sleep(0.2)
        assert (await slots.in_flight(7))[Lane.INTERACTIVE] == 1


async def test_a_permit_taken_back_while_nobody_listened_is_given_up_at_its_renewal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(desk, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(desk.Desk, "_hear", lambda *_: None)
    monkeypatch.setattr(desk, "SUBSCRIBE_SECONDS", 0.05)
    server = a_server(1)
    row = asyncio.create_task(Gauge(server).hold(seconds=60))
    await settled(server, batch=1)
    async with asyncio.timeout(2), permit(server, lane=Lane.INTERACTIVE):
        with pytest.raises(SlotTaken):
            await row


# --- What is shown -------------------------------------------------------------------


async def test_the_occupancy_names_who_holds_a_slot() -> None:
    server = a_server(4)
    async with (
        permit(server, lane=Lane.BATCH, label="Reviews v2", model="demo", tokens=300, owner=3),
        permit(server, lane=Lane.INTERACTIVE, label="Chat", person=5),
    ):
        seen = await slots.occupancy(server)
    assert [(entry.lane, entry.label, entry.owner, entry.tokens) for entry in seen.held] == [
        ("batch", "Reviews v2", 3, 300),
        ("interactive", "Chat", 5, 0),
    ]


async def test_what_requests_cost_is_counted() -> None:
    server = a_server(1)
    for _ in range(2):
        async with permit(server, lane=Lane.BATCH) as held:
            held.used(Usage(prompt_tokens=100, cached_tokens=80, completion_tokens=20))
    async with permit(server, lane=Lane.BATCH):
        pass  # nothing is known of it
    buckets = await slots.rates(server, minutes=1)
    assert len(buckets) == 6
    assert [b.start for b in buckets] == sorted(b.start for b in buckets)
    total = [
        sum(getattr(b, name) for b in buckets)
        for name in ("requests", "prompt", "cached", "completion")
    ]
    assert total == [2, 200, 160, 40]
