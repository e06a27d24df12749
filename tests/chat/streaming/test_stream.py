"""An answer's events in a real Redis."""

import asyncio
from typing import Any

import pytest

from apps.chat.answering.sse import encode, parse_position
from apps.chat.streaming import event_log, redis_writer, stream
from apps.chat.streaming.event_log import AnswerLog
from apps.chat.streaming.events import Snapshot, StreamEvent, compact_json, replay
from apps.chat.streaming.stream import follow
from apps.runtime.redis import async_redis
from tests.waiting import until

ANSWER = 7


async def read(after: int | None = None) -> list[StreamEvent]:
    return [entry async for entry in follow(ANSWER, after) if entry is not None]


def text_after(entries: list[StreamEvent]) -> str:
    return replay(entries).text


async def test_the_first_token_comes_at_once_and_the_next_ones_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_log, "COALESCE_SECONDS", 20)
    log = AnswerLog(ANSWER)
    reader = follow(ANSWER)
    await anext(reader)  # the empty snapshot
    log.add_token("a")
    async with asyncio.timeout(19):
        first = await anext(reader)
    for letter in "bcde":
        log.add_token(letter)
    await log.end("done", finish_reason="stop")
    rest = await anext(reader)
    assert first is not None
    assert rest is not None
    assert (first.data, rest.data) == ('{"text":"a"}', '{"text":"bcde"}')


async def test_what_can_wait_comes_with_the_first_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "COALESCE_SECONDS", 20)
    log = AnswerLog(ANSWER)
    batches = stream.follow_batches(ANSWER)
    await anext(batches)
    log.add_soon("progress", total=20)
    log.add_token("a")
    assert [event.event for event in await anext(batches)] == ["progress", "token"]
    await batches.aclose()


async def test_what_can_wait_comes_soon_where_nothing_follows() -> None:
    log = AnswerLog(ANSWER)
    reader = follow(ANSWER)
    await anext(reader)
    log.add_soon("progress", total=20)
    event = await anext(reader)
    assert event is not None
    assert event.event == "progress"


async def test_the_order_of_different_events_is_kept() -> None:
    log = AnswerLog(ANSWER)
    log.add_reasoning("hm")
    log.add_token("a")
    log.add("usage", prompt_tokens=1)
    await log.end("done", finish_reason="stop")
    assert [entry.event for entry in await read(0)] == ["reasoning", "token", "usage", "done"]
    assert [entry.id for entry in await read(0)] == [1, 2, 3, 4]


async def test_who_comes_late_reads_what_the_answer_waits_for() -> None:
    log = AnswerLog(ANSWER)
    log.add("loading")
    log.add("loading", share=0.4)
    reader = follow(ANSWER)
    first, second = await anext(reader), await anext(reader)
    assert first is not None
    assert second is not None
    assert (first.event, second.event, second.data) == ("snapshot", "loading", '{"share":0.4}')
    log.add_token("a")
    third = await anext(reader)
    assert third is not None
    assert (third.event, third.id) == ("token", second.id + 1)
    await log.end("done", finish_reason="stop")
    await reader.aclose()


async def test_a_checkpoint_bounds_the_stream_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_log, "CHECKPOINT_EVERY", 10)
    monkeypatch.setattr(event_log, "COALESCE_SECONDS", 0)
    log = AnswerLog(ANSWER)
    live = asyncio.create_task(read())
    for number in range(100):
        log.add_token(f"{number} ")
        await asyncio.sleep(0)  # lets the reader run
    whole = log.text
    await log.end("done", finish_reason="stop")
    here = await read()
    del log
    assert await async_redis().xlen("answer:7:events") <= 12
    assert text_after(await live) == whole
    assert text_after(here) == whole
    assert text_after(await read()) == whole
    behind = await read(after=3)  # dropped long ago: begins anew
    assert behind[0].event == "snapshot"
    assert text_after(behind) == whole
    assert stream.partial_snapshot(ANSWER) == Snapshot("complete", whole)


async def test_what_redis_missed_is_written_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away() -> None:
        refused.append(1)
        raise stream.RedisError("away")

    refused: list[int] = []
    log = AnswerLog(ANSWER)
    log.add_token("a")
    await until(lambda: not log.unwritten)
    with monkeypatch.context() as patch:
        patch.setattr(redis_writer, "async_redis", away)
        log.add_token("b")
        await until(lambda: refused)
    log.add_token("c")
    await log.end("done", finish_reason="stop")
    assert stream.partial_snapshot(ANSWER).text == "abc"


async def test_an_event_that_comes_during_a_write_is_written_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class SlowRedis:
        async def eval(self, *arguments: Any) -> None:
            began.set()
            await may_end.wait()
            await async_redis().eval(*arguments)

    began, may_end = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(redis_writer, "async_redis", SlowRedis)
    log = AnswerLog(ANSWER)
    log.add("queued")
    await began.wait()
    log.add("loading")
    # Timers of one loop run in their order: the tick that would write the event comes before.
    after_the_tick = event_log.COALESCE_SECONDS * 2
    asyncio.get_running_loop().call_later(after_the_tick, may_end.set)
    await until(lambda: not log.unwritten)
    assert [event.event for event in log.events] == ["queued", "loading"]


async def test_what_redis_refuses_does_not_stop_what_follows() -> None:
    await async_redis().xadd("answer:7:events", {"e": "token", "d": "{}"}, id="5-0")
    log = AnswerLog(ANSWER)
    log.add_token("refused, an event of this number or a later one is there")
    await log.end("done", finish_reason="stop")
    assert not log.unwritten
    assert 0 < await async_redis().ttl("answer:7:events") <= event_log.FINISHED_EXPIRES_SECONDS


async def test_event_stream_expires() -> None:
    log = AnswerLog(ANSWER)
    log.add_token("a")
    await until(lambda: not log.unwritten)
    assert await async_redis().ttl("answer:7:events") > 24 * 3600
    await log.end("done", finish_reason="stop")
    assert 0 < await async_redis().ttl("answer:7:events") <= event_log.FINISHED_EXPIRES_SECONDS


async def test_silence_is_reported() -> None:
    log = AnswerLog(ANSWER)
    reader = follow(ANSWER, ping=0.01)
    assert (await anext(reader)) is not None
    assert (await anext(reader)) is None
    assert not log.events
    await reader.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "position"),
    [(None, None), ("", None), ("start", None), ("12", 12), ("-1", None), ("9" * 40, None)],
)
def test_positions(text: str | None, position: int | None) -> None:
    assert parse_position(text) == position


def test_on_the_wire() -> None:
    data = compact_json({"text": "a\nb\u2028\ud800"})
    assert encode(StreamEvent(3, "token", data)) == (
        b'id: 3\nevent: token\ndata: {"text":"a\\nb\\u2028\\ud800"}\n\n'
    )
