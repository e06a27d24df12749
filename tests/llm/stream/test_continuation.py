"""A begun answer is gone on from, and never there twice: some builds of llama.cpp repeat it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from apps.llm.client import ChatRequest, Client, PartialCompletion
from apps.llm.endpoint import Endpoint
from apps.llm.events import Done, Token
from apps.llm.stream.continuation import EchoStripper

BEGUN = "Once upon a time, so it goes"
WHOLE = f"{BEGUN} there was a king."
GOES_ON = [" there", " was", " a king."]
REPEATS = ["Once upon a", " time, so it goes there", " was a king."]
REPEATS_AT_ONCE = [WHOLE]
STRIPPED = [f"\n\n{BEGUN}", " there was a king."]
LONG = ChatRequest("any", [{"role": "user", "content": "Say much."}], 900)


@pytest.mark.parametrize("pieces", [GOES_ON, REPEATS, REPEATS_AT_ONCE, STRIPPED])
def test_only_what_is_new(pieces: list[str]) -> None:
    rest = EchoStripper(f" {BEGUN}")
    assert "".join(map(rest.feed, pieces)) + rest.end() == " there was a king."


@pytest.mark.parametrize(
    ("pieces", "at_once", "new"),
    [
        ([" there"], " there", " there"),
        (["Once", " more."], "Once more.", "Once more."),  # it only begins like it
        (["Once"], "", "Once"),  # ... and ends
        ([BEGUN], "", ""),  # there was nothing to add
        (["\n", "New"], "\nNew", "\nNew"),
        ([], "", ""),
    ],
)
def test_undecided_text_is_held_back(pieces: list[str], at_once: str, new: str) -> None:
    rest = EchoStripper(BEGUN)
    assert "".join(map(rest.feed, pieces)) == at_once
    assert at_once + rest.end() == new
    assert rest.feed(BEGUN) == BEGUN  # once


def test_nothing_was_begun() -> None:
    assert EchoStripper(" ").feed("Once") == "Once"


def events(pieces: list[str]) -> bytes:
    deltas = [{"choices": [{"delta": {"content": text}, "finish_reason": None}]} for text in pieces]
    last = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in [*deltas, last])


@asynccontextmanager
async def saying(pieces: list[str]) -> AsyncIterator[Client]:
    """A client of a server that answers every request with these pieces."""
    body = events(pieces)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head % len(body) + body)
        writer.close()
        await writer.wait_closed()
        answered.set()

    answered = asyncio.Event()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        client = Client(Endpoint(f"http://127.0.0.1:{port}/v1"))
        yield client
        await client.aclose()
        await answered.wait()


@pytest.mark.parametrize("pieces", [GOES_ON, REPEATS, REPEATS_AT_ONCE])
async def test_a_row(pieces: list[str]) -> None:
    async with saying(pieces) as client:
        whole = await client.complete(LONG, PartialCompletion(BEGUN, 7))
    assert whole.text == WHOLE


@pytest.mark.parametrize("pieces", [GOES_ON, REPEATS, REPEATS_AT_ONCE, [BEGUN], ["Once"]])
async def test_an_answer_of_the_chat(pieces: list[str]) -> None:
    request = replace(LONG, messages=[*LONG.messages, {"role": "assistant", "content": BEGUN}])
    async with saying(pieces) as client:
        told = [event async for event in client.stream_chat(request)]
    text = "".join(event.text for event in told if isinstance(event, Token))
    assert text == {BEGUN: "", "Once": "Once"}.get(pieces[0], " there was a king.")
    assert told[-1] == Done("stop")
