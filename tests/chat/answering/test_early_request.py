"""The request for an answer is sent while its question is being saved."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.db.models.signals import pre_save
from django.test import AsyncClient

from apps.chat.answering import runner
from apps.chat.models import Conversation, Message, Role
from apps.chat.streaming import runner_registry
from apps.runtime.async_db import in_db
from apps.runtime.threads import head_start
from apps.runtime.threads.head_start import HeadStart
from apps.servers.models import Server
from tests.chat.conftest import ask_in, events_of, open_with, read_events
from tests.chat.tools.tool_server import ToolServer, call, create_tool_server, say
from tests.waiting import until, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def before_saving() -> Iterator[list[Callable[[], object]]]:
    """What a test has run before each message is saved."""
    actions: list[Callable[[], object]] = []

    def run(**_: object) -> None:
        for action in actions:
            action()

    pre_save.connect(run, sender=Message)
    yield actions
    pre_save.disconnect(run, sender=Message)


async def test_the_server_reads_the_prompt_while_the_question_is_saved(
    alice_api: AsyncClient,
    caller: ToolServer,
    caller_server: Server,
    before_saving: list[Callable[[], object]],
) -> None:
    conversation = await open_with(alice_api)
    before_saving.append(lambda: wait_until(lambda: caller.asked, what="the request"))
    events = await events_of(alice_api, await ask_in(alice_api, conversation))
    assert events[-1].name == "done"
    answer = await Message.objects.answers().select_related("parent").aget()
    assert answer.content == "Hellothere"
    assert answer.parent is not None
    assert caller.asked[0]["messages"] == [{"role": "user", "content": answer.parent.content}]


@pytest.fixture
async def in_a_served_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests come from a server whose loop goes on; a head start takes as long as it takes."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(runner, "serving_loop", lambda: loop)
    monkeypatch.setattr(head_start, "SECONDS", 60)


@pytest.mark.usefixtures("in_a_served_request")
async def test_a_question_is_saved_once_its_request_is_on_its_way(
    alice_api: AsyncClient,
    caller: ToolServer,
    caller_server: Server,
    before_saving: list[Callable[[], object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    class Noted(HeadStart):
        def end(self) -> None:
            order.append("on its way")
            super().end()

    monkeypatch.setattr(runner, "HeadStart", Noted)
    before_saving.append(lambda: order.append("saved"))
    await events_of(alice_api, await ask_in(alice_api, await open_with(alice_api)))
    assert order[:3] == ["on its way", "saved", "saved"]  # question and answer


@pytest.mark.usefixtures("in_a_served_request")
async def test_a_question_that_waits_for_a_slot_is_saved_meanwhile(
    alice_api: AsyncClient, caller: ToolServer, caller_server: Server
) -> None:
    caller.hang = True
    answers = [
        await ask_in(alice_api, await open_with(alice_api))
        for _ in range(caller_server.slots_of("caller") + 1)
    ]
    assert await Message.objects.answers().unfinished().acount() == len(answers)
    for answer in reversed(answers):  # the one that waits first
        await runner.stop(answer)
    await until(lambda: not caller.open, what="the end of the requests")


async def test_a_question_that_is_not_saved_is_not_asked_on(
    alice_api: AsyncClient,
    caller: ToolServer,
    caller_server: Server,
    before_saving: list[Callable[[], object]],
) -> None:
    caller.hang = True
    conversation = await open_with(alice_api)

    def fail() -> None:
        wait_until(lambda: caller.open, what="the request")
        raise DatabaseError("disk I/O error")

    before_saving.append(fail)
    with pytest.raises(DatabaseError):
        await ask_in(alice_api, conversation)
    await until(lambda: not caller.open, what="the end of the request")
    assert not await Message.objects.aexists()
    assert (await Conversation.objects.aget()).active_leaf_id is None


async def test_calls_of_an_answer_wait_until_it_is_saved(
    alice_api: AsyncClient,
    caller: ToolServer,
    caller_server: Server,
    before_saving: list[Callable[[], object]],
) -> None:
    caller.script[:] = [call(0, "a", "calculator", '{"expression": "6 * 7"}'), say("42")]
    conversation = await open_with(alice_api, calculator="always")
    # The first request has ended by then.
    before_saving.append(
        lambda: wait_until(lambda: caller.asked and not caller.open, what="the calls")
    )
    await events_of(alice_api, await ask_in(alice_api, conversation))
    answer = await Message.objects.answers().aget()
    assert answer.content.endswith("42")
    assert [one.result async for one in answer.tool_calls.all()] == ["42"]


async def test_a_cut_at_the_new_question_is_saved_with_its_id(
    alice: User, alice_api: AsyncClient, caller: ToolServer
) -> None:
    await in_db(create_tool_server, caller, context=200)
    conversation = await Conversation.objects.acreate(owner=alice)
    parent = None
    for role in (Role.USER, Role.ASSISTANT):
        parent = await Message.objects.acreate(
            conversation=conversation, parent=parent, role=role, content="kettle " * 200
        )
    conversation.active_leaf = parent
    await conversation.asave()
    await events_of(alice_api, await ask_in(alice_api, conversation.pk, "And now?"))
    answer = await Message.objects.answers().alast()
    assert answer is not None
    assert [one["content"] for one in caller.asked[-1]["messages"]] == ["And now?"]
    assert answer.cut_before_message == answer.parent_id


async def test_whoever_follows_an_answer_of_this_process_does_not_wait_for_redis(
    alice_api: AsyncClient,
    caller: ToolServer,
    caller_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caller.hang_at = 1
    answer = await ask_in(alice_api, await open_with(alice_api))
    with monkeypatch.context() as patched:
        patched.delattr(runner_registry, "sync_redis")
        response = await alice_api.get(f"/api/v1/answers/{answer}/events")
        assert response.status_code == 200, response.content
    await runner.stop(answer)
    assert [event.name async for event in read_events(response)][-1] == "done"
    await until(lambda: not caller.open, what="the end of the request")
    written = await Message.objects.aget(pk=answer)
    assert not await in_db(runner_registry.is_running, answer, written.created - timedelta(days=1))
