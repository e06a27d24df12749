"""Calls that wait for their person: allowed, refused, left behind, stopped."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from apps.chat.models import CallState, Conversation, Message, Status, ToolCall
from apps.chat.models.calls import CUT_OFF
from apps.chat.tools import approval
from apps.servers.models import Server
from tests.chat.conftest import (
    CALCULATE,
    answer_of,
    ask_in,
    calls_in,
    events_of,
    open_with,
    text_of,
    until_waiting,
)
from tests.chat.tools.tool_server import ToolServer, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("decision", "said"), [("approve", "42"), ("refuse", "denied")])
async def test_a_call_waits_for_its_person(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer, decision: str, said: str
) -> None:
    caller.script = [CALCULATE, say("Well.")]
    conversation = await open_with(alice_api, calculator="ask")
    answer = await ask_in(alice_api, conversation)
    (waiting,) = await until_waiting(alice_api, answer)
    assert caller.open == 0
    assert (await answer_of(alice_api, answer))["tool_calls"][0]["state"] == "waiting"
    decided = await alice_api.post(f"/api/v1/answers/{answer}/calls/{waiting}/{decision}")
    assert decided.status_code == 200, decided.content
    events = await events_of(alice_api, answer)
    assert events[-1].name == "done"
    assert said in caller.asked[1]["messages"][-1]["content"]
    late = await alice_api.post(f"/api/v1/answers/{answer}/calls/{waiting}/{decision}")
    assert (late.status_code, late.json()["code"]) == (409, "not_waiting")


async def test_tool_allowed_always_is_not_asked_for_again(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [CALCULATE, say("So."), CALCULATE, say("Again.")]
    conversation = await open_with(alice_api, calculator="ask")
    answer = await ask_in(alice_api, conversation)
    (waiting,) = await until_waiting(alice_api, answer)
    await alice_api.post(f"/api/v1/answers/{answer}/calls/{waiting}/approve?always=true")
    await events_of(alice_api, answer)
    again = await ask_in(alice_api, conversation)
    assert (await events_of(alice_api, again))[-1].name == "done"  # so nothing waited
    assert (await answer_of(alice_api, again))["tool_calls"][0]["result"] == "42"


async def test_a_call_whose_process_died_says_so(
    alice_api: AsyncClient, alice: User, caller_server: Server
) -> None:
    conversation = await Conversation.objects.acreate(owner=alice)
    answer = await Message.objects.acreate(
        conversation=conversation, role="assistant", status=Status.QUEUED,
        created=timezone.now() - timedelta(minutes=1),
    )  # fmt: skip
    await answer.tool_calls.acreate(round=1, call_id="c", name="calculator", arguments="{}")
    shown = await answer_of(alice_api, answer.pk)
    assert shown["status"] == "interrupted"
    assert [one["state"] for one in shown["tool_calls"]] == ["stopped"]


async def left_waiting(client: AsyncClient, conversation: int) -> tuple[Message, list[ToolCall]]:
    """An answer as a process leaves it that dies while two of its three calls wait."""
    question = await Message.objects.acreate(
        conversation_id=conversation, role="user", content="What is 6 * 7?"
    )
    answer = await Message.objects.acreate(
        conversation_id=conversation, role="assistant", status=Status.QUEUED, parent=question,
        created=timezone.now() - timedelta(minutes=1),
    )  # fmt: skip
    await Conversation.objects.filter(pk=conversation).aupdate(active_leaf=answer)
    states = (CallState.WAITING, CallState.WAITING, CallState.DONE)
    calls = [
        await answer.tool_calls.acreate(
            round=1, call_id="c", name="calculator", arguments=json.dumps({"expression": f"{n}+1"}),
            state=state, result="done" if state == CallState.DONE else "",
        )
        for n, state in enumerate(states)
    ]  # fmt: skip
    shown = await answer_of(client, answer.pk)
    assert (shown["status"], shown["error"]["code"]) == ("interrupted", "interrupted")
    assert [one["state"] for one in shown["tool_calls"]] == ["waiting", "waiting", "done"]
    return answer, calls


async def test_a_call_that_waits_outlives_its_process(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [say("Well.")]
    conversation = await open_with(alice_api, calculator="ask")
    answer, calls = await left_waiting(alice_api, conversation)
    address = f"/api/v1/answers/{answer.pk}/calls/{calls[0].pk}/approve"
    allowed = (await alice_api.post(address)).json()
    assert (allowed["state"], allowed["call_id"]) == ("running", "c")
    longer = allowed["answer"]
    assert longer != answer.pk
    late = await alice_api.post(address)
    assert (late.status_code, late.json()["code"]) == (409, "not_waiting")
    (waiting,) = await until_waiting(alice_api, longer)
    await alice_api.post(f"/api/v1/answers/{longer}/calls/{waiting}/refuse")
    events = await events_of(alice_api, longer)
    assert [one["state"] for one in calls_in(events)] == ["done", "refused", "done"]
    assert text_of(events) == "Well."
    question, called, *results = caller.asked[0]["messages"]
    assert [result["content"][:20] for result in results] == ["1", "The user denied this", "done"]
    assert (question["content"], len(called["tool_calls"])) == ("What is 6 * 7?", 3)
    shown = await answer_of(alice_api, longer)
    assert (shown["status"], shown["parent"]) == ("complete", answer.parent_id)
    before = await answer_of(alice_api, answer.pk)
    assert [one["state"] for one in before["tool_calls"]] == ["stopped", "stopped", "done"]


async def test_calls_left_waiting_end_with_the_next_question_or_a_stop(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [say("Well.")]
    conversation = await open_with(alice_api, calculator="ask")
    answer, _ = await left_waiting(alice_api, conversation)
    longer = (await alice_api.post(f"/api/v1/answers/{answer.pk}/continue")).json()["id"]
    await until_waiting(alice_api, longer)
    stopped = (await alice_api.post(f"/api/v1/answers/{longer}/stop")).json()
    assert stopped["status"] == "stopped"
    assert [one["state"] for one in stopped["tool_calls"]] == ["stopped", "stopped", "done"]
    answer, _ = await left_waiting(alice_api, conversation)
    await events_of(alice_api, await ask_in(alice_api, conversation, "Never mind."))
    shown = await answer_of(alice_api, answer.pk)
    assert [one["state"] for one in shown["tool_calls"]] == ["stopped", "stopped", "done"]


async def test_nobody_else_may_decide(
    alice_api: AsyncClient, bob_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [CALCULATE, say("Well.")]
    conversation = await open_with(alice_api, calculator="ask")
    answer = await ask_in(alice_api, conversation)
    (waiting,) = await until_waiting(alice_api, answer)
    address = f"/api/v1/answers/{answer}/calls/{waiting}/approve"
    assert (await bob_api.post(address)).status_code == 404
    assert (await alice_api.get(address)).status_code == 405
    assert (await alice_api.post(f"/api/v1/answers/{answer}/calls/0/approve")).status_code == 404
    await alice_api.post(f"/api/v1/answers/{answer}/stop")


async def test_stop_while_a_call_waits(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [[*say("Let me."), *CALCULATE], say("Later.")]
    conversation = await open_with(alice_api, calculator="ask")
    answer = await ask_in(alice_api, conversation)
    await until_waiting(alice_api, answer)
    stopped = await alice_api.post(f"/api/v1/answers/{answer}/stop")
    assert stopped.json()["status"] == "stopped"
    assert [one["state"] for one in stopped.json()["tool_calls"]] == ["stopped"]
    # The conversation goes on: every call that is sent has a result.
    await events_of(alice_api, await ask_in(alice_api, conversation, "Never mind."))
    roles = [message["role"] for message in caller.asked[-1]["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_answer_stopped_at_its_tool_calls_continues_after_a_blank_line(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [[*say("Let me."), *CALCULATE], say("Well.")]
    conversation = await open_with(alice_api, calculator="ask")
    answer = await ask_in(alice_api, conversation)
    await until_waiting(alice_api, answer)
    await alice_api.post(f"/api/v1/answers/{answer}/stop")
    longer = (await alice_api.post(f"/api/v1/answers/{answer}/continue")).json()["id"]
    assert text_of(await events_of(alice_api, longer)) == "Letme.\n\nWell."
    roles = [message["role"] for message in caller.asked[1]["messages"]]
    assert roles == ["user", "assistant", "tool"]


async def test_a_call_that_was_cut_off_is_run_again_when_a_person_says_so(
    alice_api: AsyncClient, alice_browser: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    """The others of its round wait for him; what they were is still to be read."""
    caller.script = [say("Well.")]
    conversation = await open_with(alice_api, calculator="always")
    answer, calls = await left_waiting(alice_api, conversation)
    await ToolCall.objects.filter(pk__in=[one.pk for one in calls[:2]]).aupdate(
        state=CallState.STOPPED, result=CUT_OFF
    )
    html = (await alice_browser.get(f"/chat/answers/{answer.pk}/")).content.decode()
    assert html.count("Run again") == 2
    address = f"/api/v1/answers/{answer.pk}/calls/{calls[0].pk}/run-again"
    again = (await alice_api.post(address)).json()
    assert (again["state"], again["result"]) == ("running", "")
    twice = await alice_api.post(address)
    assert (twice.status_code, twice.json()["code"]) == (409, "not_cut_off")
    longer = again["answer"]
    (waiting,) = await until_waiting(alice_api, longer)
    await alice_api.post(f"/api/v1/answers/{longer}/calls/{waiting}/refuse")
    assert text_of(await events_of(alice_api, longer)) == "Well."
    results = [message["content"] for message in caller.asked[0]["messages"][2:]]
    assert results[0] == "1"
    assert results[1].startswith("The user denied this call")
    before = await answer_of(alice_api, answer.pk)
    assert [one["result"] for one in before["tool_calls"]] == [CUT_OFF, CUT_OFF, "done"]


async def test_what_has_a_result_is_not_run_again(
    alice_api: AsyncClient, bob_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [CALCULATE, say("Well.")]
    answer = await ask_in(alice_api, await open_with(alice_api, calculator="always"))
    await events_of(alice_api, answer)
    (done,) = (await answer_of(alice_api, answer))["tool_calls"]
    address = f"/api/v1/answers/{answer}/calls/{done['id']}/run-again"
    assert (await alice_api.post(address)).status_code == 409
    assert (await bob_api.post(address)).status_code == 404
    assert (await alice_api.get(address)).status_code == 405


async def test_a_stopped_call_can_be_run_from_the_page(
    alice_api: AsyncClient, alice_browser: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [[*say("Let me."), *CALCULATE], say("Well.")]
    answer = await ask_in(alice_api, await open_with(alice_api, calculator="ask"))
    (waiting,) = await until_waiting(alice_api, answer)
    await alice_api.post(f"/api/v1/answers/{answer}/stop")
    page = await alice_browser.post(f"/chat/calls/{waiting}/again/")
    assert page.headers["HX-Retarget"] == "#thread"
    longer = await Message.objects.alatest("pk")
    assert text_of(await events_of(alice_api, longer.pk)) == "Letme.\n\nWell."
    (ran,) = (await answer_of(alice_api, longer.pk))["tool_calls"]
    assert ran["result"] == "42"
    late = await alice_browser.post(f"/chat/calls/{ran['id']}/again/")
    assert late.status_code == 422


async def test_nobody_answers_in_time(
    alice_api: AsyncClient,
    caller_server: Server,
    caller: ToolServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(approval, "APPROVAL_SECONDS", 0.1)
    caller.script = [CALCULATE, say("Pity.")]
    conversation = await open_with(alice_api, calculator="ask")
    answer = await ask_in(alice_api, conversation)
    events = await events_of(alice_api, answer)
    assert calls_in(events)[0]["state"] == CallState.EXPIRED
    assert "the call was not approved" in caller.asked[1]["messages"][-1]["content"]
