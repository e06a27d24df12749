"""The events of an answer with its text as HTML, put together as a page does it."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from django.test import AsyncClient

from apps.chat.answering import typeset
from apps.chat.answering.typeset import Typesetter
from apps.chat.models import Message
from apps.chat.streaming.events import Snapshot, StreamEvent, ToolCallEvent, compact_json
from apps.core.text import markdown
from apps.servers.models import Server
from tests.chat.conftest import Event, ask, read_events

CALL = ToolCallEvent(7, 1, "c", 1, "calculator", "{}", 11, "running", "")


def event(name: str, /, **data: Any) -> StreamEvent:
    return StreamEvent(1, name, compact_json(data))


def decoded(events: list[StreamEvent]) -> list[Event]:
    found = []
    for told in events:
        read = Event(json.loads(told.data))
        read.name = told.event
        found.append(read)
    return found


def shown(events: list[Event]) -> dict[object, str]:
    """Return the HTML of each part, of whole blocks: changes inside have tests of their own."""
    parts: dict[object, list[str]] = {}
    for told in events:
        if told.name == "typeset":
            assert told["inside"] is None
            blocks = parts.setdefault(told["part"], [])
            blocks[told["at"] :] = told["blocks"]
    return {part: "".join(blocks) for part, blocks in parts.items()}


async def told_of(*events: StreamEvent) -> list[Event]:
    typesetter, found = Typesetter(), []
    for one in events:
        found += await typesetter.add(one)
    return decoded(found + await typesetter.render())


async def test_a_snapshot_is_told_part_by_part_with_its_calls_in_between() -> None:
    text = "I *count*.\n\n\n\n# Done"
    snapshot = Snapshot("streaming", text, "Hm.", (CALL,))
    found = await told_of(StreamEvent(1, "snapshot", snapshot.as_json()))
    assert [told.name for told in found if told.name != "typeset"] == ["snapshot", "tool_call"]
    names = [(told.name, told.get("part")) for told in found]
    assert (
        names.index(("typeset", 0)) < names.index(("tool_call", None)) < names.index(("typeset", 1))
    )
    assert shown(found) == {
        "reasoning": "<p>Hm.</p>",
        0: "<p>I <em>count</em>.</p>",
        1: "<h1>Done</h1>",
    }


async def test_text_after_a_call_is_a_part_of_its_own() -> None:
    call = event("tool_call", **asdict(CALL))
    found = await told_of(event("token", text="a\n\n"), call, call, event("token", text="b"))
    assert shown(found) == {0: "<p>a</p>", 1: "<p>b</p>"}
    assert [told.name for told in found].count("tool_call") == 2


async def test_calls_of_one_round_share_their_place() -> None:
    second = event("tool_call", **asdict(CALL) | {"id": 8})
    found = await told_of(event("tool_call", **asdict(CALL)), second, event("token", text="b"))
    assert shown(found) == {1: "<p>b</p>"}


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("# Tea\n\nGreen", True),
        ('{"a": 1}', False),
        ("See [a].\n\nMore.\n\n[a]: https://b.org\n", False),
    ],
)
async def test_the_end_says_whether_the_saved_text_looks_the_same(text: str, exact: bool) -> None:
    found = await told_of(event("token", text=text), event("done", finish_reason="stop"))
    assert found[-1] == {"finish_reason": "stop", "exact": exact}


async def test_rendering_takes_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.5])
    monkeypatch.setattr(typeset.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(typeset.time, "monotonic", lambda: 100.0)
    typesetter = Typesetter()
    assert typesetter.due_in() is None
    await typesetter.add(event("token", text="a"))
    assert typesetter.due_in() == 0
    await typesetter.render()
    await typesetter.add(event("token", text="b"))
    assert typesetter.due_in() == typeset.MAX_PAUSE_SECONDS


@pytest.mark.django_db(transaction=True)
async def test_an_answer_is_streamed_as_html(alice_api: AsyncClient, server: Server) -> None:
    _, answer = await ask(alice_api, max_tokens=50)
    response = await alice_api.get(f"/api/v1/answers/{answer}/events?html=true")
    found = [told async for told in read_events(response)]
    assert found[0].name == "snapshot"
    assert "text" not in found[0]
    assert {told.name for told in found} & {"token", "reasoning"} == set()
    assert found[-1].name == "done"
    assert found[-1]["exact"]
    response = await alice_api.get(f"/api/v1/answers/{answer}/events?html=true")
    again = [told async for told in read_events(response)]
    saved = await Message.objects.aget(pk=answer)
    assert shown(again)[0].replace("\n", "") == markdown.render(saved.content).replace("\n", "")
