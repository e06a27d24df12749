"""Answers on a real llama.cpp and a real Redis: nothing is lost, whoever reads when."""

import asyncio
from contextlib import AsyncExitStack, aclosing

import pytest
from django.test import AsyncClient

from apps.chat.models import Message, Status, Usage
from apps.chat.streaming.stream import partial_snapshot
from apps.llm import permits
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import async_redis
from apps.servers.models import Server
from apps.servers.probing.discovery import fetch_slots
from apps.servers.services import choose_target, hold_slot, refresh_server
from tests.chat.conftest import ask, ask_in, events_of, read_events, text_of
from tests.llama_process import LlamaProcess
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


async def busy_slots(server: Server) -> int:
    states = await fetch_slots(choose_target(server).client) or []
    return sum(bool(state["is_processing"]) for state in states)


async def test_answer_streams_a_snapshot_tokens_and_the_end(
    alice_api: AsyncClient, server: Server, slow_llama: None
) -> None:
    _, answer = await ask(alice_api, max_tokens=60)
    events = await events_of(alice_api, answer)
    names = [event.name for event in events]
    assert names[0] == "snapshot"
    assert "token" in names
    assert names[-2:] == ["usage", "done"]
    assert events[-1] == {"finish_reason": "length"}
    assert events[-2]["completion_tokens"] == 60
    assert events[-2]["ttft_ms"] > 0
    saved = await Message.objects.aget(pk=answer)
    assert saved.status == Status.COMPLETE
    assert saved.content == text_of(events)
    assert saved.usage == Usage(**events[-2])


async def test_the_first_token_of_an_answer_is_counted(
    alice_api: AsyncClient, server: Server
) -> None:
    _, answer = await ask(alice_api)
    await events_of(alice_api, answer)
    totals = (await asyncio.to_thread(permits.read_totals, [server.pk]))[server.pk]
    counted = sum(totals.values(), permits.Counts())
    buckets = range(len(permits.FIRST_TOKEN_BOUNDS_MS) + 1)
    assert counted["requests"] >= 1
    assert sum(counted[f"first_{number}"] for number in buckets) == 1


async def test_a_finished_answer_is_a_snapshot_and_its_end(
    alice_api: AsyncClient, server: Server
) -> None:
    _, answer = await ask(alice_api)
    first = await events_of(alice_api, answer)
    again = await events_of(alice_api, answer)
    assert [event.name for event in again] == ["snapshot", "usage", "done"]
    assert again[0]["status"] == "complete"
    assert again[0]["text"] == text_of(first)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_reload_in_mid_answer_loses_nothing(
    alice_api: AsyncClient,
    server: Server,
    llama: LlamaProcess,
    elsewhere: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the process that writes, and from any other, which has only Redis."""
    if elsewhere:
        monkeypatch.setattr("apps.chat.streaming.event_log._local_logs", Forgetful())
    with llama.slowed():
        _, answer = await ask(alice_api, max_tokens=600)
        response = await alice_api.get(f"/api/v1/answers/{answer}/events")
        seen = []
        async with aclosing(read_events(response)) as reader:
            async for event in reader:
                seen.append(event)
                if len(seen) == 6:
                    break
    resumed, second_tab = await asyncio.gather(
        events_of(alice_api, answer, after=seen[-1].id), events_of(alice_api, answer)
    )
    saved = await Message.objects.aget(pk=answer)
    assert saved.completion_tokens == 600
    assert resumed[0].name != "snapshot"
    assert text_of(seen + resumed) == saved.content
    assert second_tab[0].name == "snapshot"
    assert text_of(second_tab) == saved.content


class Forgetful(dict[int, object]):
    """Of logs that are written here: as if another process did."""

    def __setitem__(self, answer_id: int, log: object) -> None:
        pass


async def test_stop_frees_the_slot_and_keeps_the_text(
    alice_api: AsyncClient, server: Server, llama: LlamaProcess
) -> None:
    before = llama.written()
    with llama.slowed():
        _, answer = await ask(alice_api, max_tokens=4000)
        response = await alice_api.get(f"/api/v1/answers/{answer}/events")
        seen = []
        async for event in read_events(response):
            seen.append(event)
            if event.name == "token" and len(seen) > 3:
                break
        assert await busy_slots(server) == 1
        stopped = await alice_api.post(f"/api/v1/answers/{answer}/stop")
    assert stopped.json()["status"] == "stopped"
    assert stopped.json()["content"].startswith(text_of(seen))
    assert 0 < stopped.json()["usage"]["completion_tokens"] < 4000
    await asyncio.to_thread(llama.wait_until_idle)
    assert llama.written() < before + 4000
    end = (await events_of(alice_api, answer))[-1]
    assert (end.name, end) == ("done", {"finish_reason": "stopped"})


async def test_stop_while_waiting_for_a_slot(alice_api: AsyncClient, server: Server) -> None:
    server = await refresh_server(server)
    async with AsyncExitStack() as others:
        for _ in range(server.slots):
            others_permit = hold_slot(server, lane=Lane.INTERACTIVE)
            await others.enter_async_context(others_permit)
        _, answer = await ask(alice_api)
        response = await alice_api.get(f"/api/v1/answers/{answer}/events")
        async for event in read_events(response):
            if event.name == "queued" or event.get("status") == "queued":
                break
        await alice_api.post(f"/api/v1/answers/{answer}/stop")
        assert (await events_of(alice_api, answer))[-1] == {"finish_reason": "stopped"}
        stopped = await Message.objects.aget(pk=answer)
        assert (stopped.status, stopped.content) == ("stopped", "")


async def test_the_text_of_a_runner_that_died_is_kept(
    alice_api: AsyncClient, server: Server, slow_llama: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, answer = await ask(alice_api, max_tokens=3000)
    response = await alice_api.get(f"/api/v1/answers/{answer}/events")
    seen = []
    async for event in read_events(response):
        seen.append(event)
        if len(seen) > 8:
            break
    # Who reads in the process that writes is ahead of Redis.
    await until(
        lambda: in_db(lambda: partial_snapshot(answer).text.startswith(text_of(seen))),
        what="what was read in Redis",
    )

    # What a kill -9 leaves behind: the row, the stream, and a heartbeat that runs out.
    async def never_saved(*_: object) -> None: ...

    monkeypatch.setattr("apps.chat.answering.runner.Runner._finish", never_saved)
    killed = [task for task in asyncio.all_tasks() if "Runner._" in str(task.get_coro())]
    for task in killed:
        task.cancel()
    await asyncio.wait(killed)
    redis = async_redis()
    await redis.delete(*[key async for key in redis.scan_iter("runner:*:alive")])

    shown = await alice_api.get(f"/api/v1/conversations/{conversation}")
    message = shown.json()["messages"][-1]
    assert message["status"] == "interrupted"
    assert message["content"].startswith(text_of(seen))
    assert len(text_of(seen)) > 0
    end = (await events_of(alice_api, answer))[-1]
    assert (end.name, end["code"]) == ("error", "interrupted")
    again = await alice_api.post(f"/api/v1/answers/{answer}/regenerate")
    assert again.status_code == 202


async def test_history_is_kept_and_comes_from_the_cache(
    alice_api: AsyncClient, server: Server
) -> None:
    conversation, first = await ask(alice_api, "Tell me a story. " * 20)
    await events_of(alice_api, first)
    second = await ask_in(alice_api, conversation, "Go on.")
    usage = (await events_of(alice_api, second))[-2]
    assert usage["prompt_tokens"] > 340
    assert usage["cached_tokens"] / usage["prompt_tokens"] > 0.8
