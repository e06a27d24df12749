"""Several servers with one model: one that fails makes way for the next, unseen."""

import asyncio

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from apps.gateway import targets
from apps.llm.permits import read_totals
from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.models import Server, State
from apps.servers.services import refresh_server
from tests.conftest import SLOTS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed"),
]
FAILURES = {
    "502": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad",
    "503": b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n",
    "loading": b"HTTP/1.1 503 Unavailable\r\nContent-Type: application/json\r\nContent-Length: 76"
    b'\r\n\r\n{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}  ',
    "closed": b"",
    "closed after its headers": b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n",
}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n"
WORKS = HEAD + b'{"works":true}'


@pytest.fixture(autouse=True)
def _nothing_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "failing", targets.Failing())
    monkeypatch.setattr("apps.servers.retry.RESTART_SECONDS", 0.0)


class Fake:
    """A model server that answers every request with the same bytes and closes the connection."""

    def __init__(self, name: str, reply: bytes) -> None:
        self.name, self.reply, self.asked = name, reply, 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        writer.write(self.reply)
        writer.close()

    async def start(self) -> asyncio.Server:
        listening = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        facts = ServerFacts(models=[ModelFacts("m", state="loaded")])
        server = Server(
            name=self.name,
            base_url=f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1",
            state=State.READY,
            checked_at=timezone.now(),
            stored_facts=facts.to_json(),
        )
        await sync_to_async(server.save)()
        return listening


def body(text: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_request_goes_elsewhere_before_any_byte(
    program: httpx2.AsyncClient, failure: str
) -> None:
    broken, sound = Fake("Broken", FAILURES[failure]), Fake("Sound", WORKS)
    async with await broken.start(), await sound.start():
        for number in range(12):  # each of which begins at either
            answer = await program.post("/v1/chat/completions", json=body(f"Chat {number}."))
            assert (answer.status_code, answer.content) == (200, b'{"works":true}')
        assert sound.asked == 12
        assert 1 <= broken.asked <= 3  # then it was left out


async def test_a_refused_connection_is_passed_over_and_the_server_tried_again(
    program: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "FIRST_FAILING_SECONDS", 0.0)
    broken, sound = Fake("Broken", WORKS), Fake("Sound", WORKS)
    async with await sound.start():
        async with await broken.start():
            pass
        for number in range(12):
            answer = await program.post("/v1/chat/completions", json=body(f"Chat {number}."))
            assert answer.status_code == 200
        server = await Server.objects.aget(name="Broken")
        again = await asyncio.start_server(
            broken.serve, "127.0.0.1", int(server.base_url.split(":")[2].split("/")[0])
        )
        async with again:
            for number in range(12):
                await program.post("/v1/chat/completions", json=body(f"Chat {number}."))
        assert broken.asked > 0


async def test_a_conversation_stays_at_its_server(program: httpx2.AsyncClient) -> None:
    fakes = [Fake("One", WORKS), Fake("Two", WORKS)]
    async with await fakes[0].start(), await fakes[1].start():
        for number in range(8):
            before = [fake.asked for fake in fakes]
            for _ in range(3):
                await program.post("/v1/chat/completions", json=body(f"Chat {number}."))
            grown = [fake.asked - asked for fake, asked in zip(fakes, before, strict=True)]
            assert sorted(grown) == [0, 3]
        assert all(fake.asked for fake in fakes)


async def test_when_all_fail_the_program_is_told(program: httpx2.AsyncClient) -> None:
    fakes = [Fake("One", FAILURES["503"]), Fake("Two", FAILURES["503"])]
    async with await fakes[0].start(), await fakes[1].start():
        answer = await program.post("/v1/chat/completions", json=body("Hello"))
    assert answer.status_code == 503
    assert all(fake.asked for fake in fakes)


async def test_two_entries_for_one_address_are_one_server(
    program: httpx2.AsyncClient, server: Server, idle_slots: None
) -> None:
    """Together they would have its slots twice, and people would wait in the server's own queue."""
    otherwise = server.base_url.replace("127.0.0.1", "localhost")
    assert otherwise != server.base_url
    twin = await Server.objects.acreate(
        name="Twin", base_url=otherwise, encrypted_key=server.encrypted_key
    )
    seen = [await refresh_server(one) for one in (server, twin)]
    assert seen[0].model_ids == seen[1].model_ids
    listed = [one["id"] for one in (await program.get("/v1/models")).json()["data"]]
    assert listed == seen[0].model_ids

    async def ask(number: int) -> int:
        asked = body(f"Row {number}.") | {"model": listed[0], "max_tokens": 100}
        lane = {"X-Workbench-Lane": "batch" if number else "person"}
        answer = await program.post("/v1/chat/completions", json=asked, headers=lane)
        return answer.status_code

    assert set(await asyncio.gather(*map(ask, range(3 * SLOTS)))) == {200}
    counts = await sync_to_async(read_totals)([server.pk, twin.pk])
    assert sum(model["requests"] for model in counts[server.pk].values()) == 3 * SLOTS
    assert not counts.get(twin.pk)
    named = await program.post(
        "/v1/chat/completions", json=body("Hello") | {"model": f"Twin/{listed[0]}", "max_tokens": 1}
    )
    assert named.status_code == 200  # who names an entry gets it
