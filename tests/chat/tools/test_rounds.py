"""Rounds of calls, against a model server that calls what its script says."""

import asyncio
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.chat.models import CallState, Message, Status, ToolCall
from apps.chat.tools import arguments
from apps.core import tools
from apps.core.schemas.json_types import JsonObject
from apps.core.tools import Tool, ToolError, parameters
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
from tests.chat.tools.tool_server import ToolServer, call, create_tool_server, say, think

pytestmark = pytest.mark.django_db(transaction=True)


async def echo(user: User, arguments: JsonObject) -> str:
    return f"{user.username}: {arguments['text']}"


async def fail(user: User, arguments: JsonObject) -> str:
    raise ToolError("The kettle is empty. Fill it first.")


async def crash(user: User, arguments: JsonObject) -> str:
    raise RuntimeError("secret")


async def hang(user: User, arguments: JsonObject) -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some more tools; those of the installation stay."""
    monkeypatch.setattr(tools, "registered", dict(tools.registered))
    text = parameters(text={"type": "string"})
    for name in ("echo", "fail", "crash", "hang"):
        tools.register(
            Tool(
                name, name, name, text, f"{__name__}.{name}", seconds=0.2 if name == "hang" else 60
            )
        )


async def test_answer_with_a_tool_call_has_two_rounds(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [[*think("Hm"), *say("Let me see."), *CALCULATE], say("It is 42.")]
    conversation = await open_with(alice_api, calculator="always")
    answer = await ask_in(alice_api, conversation, "What is 6 * 7?")
    events = await events_of(alice_api, answer)

    assert events[-1] == {"finish_reason": "stop"}
    (called,) = calls_in(events)
    assert (called["name"], called["arguments"]) == ("calculator", '{"expression": "6 * 7"}')
    assert (called["state"], called["result"], called["at"]) == ("done", "42", 9)

    first, second = caller.asked
    assert [tool["function"]["name"] for tool in first["tools"]] == ["calculator"]
    assert first["parallel_tool_calls"] is True
    assert second["tools"] == first["tools"]
    assert second["messages"][:-2] == first["messages"]
    assert second["messages"][-2:] == [
        {
            "role": "assistant",
            "content": "Letmesee.",
            "tool_calls": [
                {
                    "id": "call_a",
                    "type": "function",
                    "function": {"name": "calculator", "arguments": '{"expression": "6 * 7"}'},
                }
            ],
            "reasoning_content": "Hm",
        },
        {"role": "tool", "content": "42", "tool_call_id": "call_a"},
    ]
    saved = await Message.objects.aget(pk=answer)
    assert saved.content == text_of(events) == "Letmesee.\n\nItis42."
    assert (saved.status, saved.prompt_tokens) == (Status.COMPLETE, 200)

    again = await events_of(alice_api, answer)
    assert [event.name for event in again] == ["snapshot", "usage", "done"]
    assert again[0]["calls"] == [called]
    shown = await answer_of(alice_api, answer)
    assert [call["result"] for call in shown["tool_calls"]] == ["42"]


async def test_the_next_question_sends_the_same_bytes(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [[*say("So."), *CALCULATE], say("Done"), say("Yes")]
    conversation = await open_with(alice_api, calculator="always", date_and_time="always")
    await events_of(alice_api, await ask_in(alice_api, conversation))
    await events_of(alice_api, await ask_in(alice_api, conversation, "Sure?"))
    _, second, third = caller.asked
    assert third["messages"][:-2] == second["messages"]
    assert third["messages"][-2] == {"role": "assistant", "content": "Done"}
    assert json.dumps(third["tools"]) == json.dumps(second["tools"])
    names = [tool["function"]["name"] for tool in third["tools"]]
    assert names == sorted(names) == ["calculator", "date_and_time"]


async def test_several_at_once_and_each_failure_is_a_result(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    text = '{"text": "x"}'
    calls = [
        ("echo", text), ("fail", text), ("crash", text), ("hang", text), ("nothing", "{}"),
        ("echo", "{not json"), ("echo", '{"text": 7}'), ("echo", '{"text": "a", "b": 1}'),
        ("date_and_time", "{}"),
    ]  # fmt: skip
    deltas = [call(i, f"c{i}", name, arguments) for i, (name, arguments) in enumerate(calls)]
    caller.script = [[delta for pieces in deltas for delta in pieces], say("Sorry.")]
    names = ("echo", "fail", "crash", "hang")
    conversation = await open_with(alice_api, **dict.fromkeys(names, "always"))
    answer = await ask_in(alice_api, conversation)
    events = await events_of(alice_api, answer)
    assert events[-1].name == "done"
    sent = [message for message in caller.asked[1]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in sent] == [f"c{i}" for i in range(len(calls))]
    said = [message["content"] for message in sent]
    assert said[0] == "alice: x"
    assert said[1] == "The kettle is empty. Fill it first."
    assert "secret" not in said[2]
    assert "because of an error" in said[2]
    assert "Timed out after 0.2 s" in said[3]
    assert said[4].startswith("Unknown tool “nothing”. Available tools: crash, echo")
    assert "not valid JSON" in said[5]
    assert "text: 7 is not of type 'string'" in said[6]
    assert "'b' was unexpected" in said[7]
    assert "Unknown tool “date_and_time”" in said[8]  # not offered here, so not run
    states = [state async for state in ToolCall.objects.values_list("state", flat=True)]
    assert states == ["done", *["failed"] * 8]


async def test_a_long_result_is_cut_and_says_so(
    alice_api: AsyncClient,
    caller_server: Server,
    caller: ToolServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = json.dumps({"text": "a" * 50_000})
    caller.script = [call(0, "c", "echo", long), say("Long.")]
    conversation = await open_with(alice_api, echo="always")
    await events_of(alice_api, await ask_in(alice_api, conversation))
    said = await ToolCall.objects.aget()
    assert said.result.endswith("[Cut here: the first 6,144 of 50,007 characters are shown.]")


async def test_after_the_last_round_it_has_to_answer(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [CALCULATE]
    conversation = await open_with(alice_api, rounds=2, calculator="always")
    answer = await ask_in(alice_api, conversation)
    events = await events_of(alice_api, answer)
    assert [asked.get("tool_choice") for asked in caller.asked] == [None, None, "none"]
    assert caller.asked[0]["tools"] == caller.asked[2]["tools"]
    assert events[-1] == {"finish_reason": "tool_rounds"}
    assert await ToolCall.objects.acount() == 2


async def test_stop_while_a_tool_runs(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    tools.register(Tool("hang", "hang", "hang", parameters(), f"{__name__}.hang", seconds=60))
    caller.script = [call(0, "c", "hang", "{}")]
    conversation = await open_with(alice_api, hang="always")
    answer = await ask_in(alice_api, conversation)
    await until_waiting(alice_api, answer, CallState.RUNNING)
    stopped = await alice_api.post(f"/api/v1/answers/{answer}/stop")
    assert [one["state"] for one in stopped.json()["tool_calls"]] == ["stopped"]


@pytest.mark.parametrize(("knows", "sent"), [(False, False), (None, True)])
async def test_a_template_without_tools_gets_none(
    alice_api: AsyncClient, db: None, caller: ToolServer, knows: bool | None, sent: bool
) -> None:
    await asyncio.to_thread(create_tool_server, caller, tools=knows)
    conversation = await open_with(alice_api, calculator="always")
    await events_of(alice_api, await ask_in(alice_api, conversation))
    assert ("tools" in caller.asked[0]) is sent


async def test_continue_keeps_what_was_called(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [CALCULATE, say("It is"), say("42 indeed.")]
    conversation = await open_with(alice_api, calculator="always")
    answer = await ask_in(alice_api, conversation)
    await events_of(alice_api, answer)
    longer = (await alice_api.post(f"/api/v1/answers/{answer}/continue")).json()["id"]
    events = await events_of(alice_api, longer)
    assert text_of(events) == "Itis42indeed."
    assert caller.asked[2]["messages"][:-1] == caller.asked[1]["messages"]
    assert caller.asked[2]["messages"][-1] == {"role": "assistant", "content": "Itis"}
    shown = await answer_of(alice_api, longer)
    assert [one["result"] for one in shown["tool_calls"]] == ["42"]


async def test_continue_says_nothing_twice(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    again = [*say("It is"), {"content": " 42 indeed."}]  # a build that repeats what was begun
    caller.script = [[*say("It is"), {"content": " \n"}], again]
    conversation = await open_with(alice_api)
    answer = await ask_in(alice_api, conversation)
    await events_of(alice_api, answer)
    longer = (await alice_api.post(f"/api/v1/answers/{answer}/continue")).json()["id"]
    assert text_of(await events_of(alice_api, longer)) == "Itis 42 indeed."
    assert caller.asked[1]["messages"][-1] == {"role": "assistant", "content": "Itis"}
    shown = await answer_of(alice_api, longer)
    assert shown["content"] == "Itis 42 indeed."


async def test_one_answer_may_have_tools_of_its_own(
    alice_api: AsyncClient, caller_server: Server, caller: ToolServer
) -> None:
    caller.script = [CALCULATE, say("42")]
    opened = await alice_api.post("/api/v1/conversations", {}, content_type="application/json")
    address = f"/api/v1/conversations/{opened.json()['id']}/messages"

    async def ask_with(given: list[Any]) -> Any:
        data = {"content": "6 * 7?", "tools": given}
        return await alice_api.post(address, data, content_type="application/json")

    refused = await ask_with(["nothing"])
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_tools")
    asked = await ask_with(["calculator"])
    await events_of(alice_api, asked.json()["answer"]["id"])
    assert [tool["function"]["name"] for tool in caller.asked[0]["tools"]] == ["calculator"]
    assert (await ToolCall.objects.aget()).result == "42"
    await events_of(alice_api, (await ask_with([])).json()["answer"]["id"])
    assert "tools" not in caller.asked[2]


def test_results_leave_room_to_answer() -> None:
    assert arguments.result_limit(None, 1) == 16_000
    assert arguments.result_limit(1_000_000, 4) == 16_000
    assert arguments.result_limit(4096, 1) == 3072
    assert arguments.result_limit(4096, 16) == 500
