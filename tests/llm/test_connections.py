"""The client's connections, against servers that behave and servers that do not."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_django import Settings

from apps.llm import errors, timeouts
from apps.llm.client import ChatRequest, Client
from apps.llm.endpoint import Endpoint
from apps.llm.events import Done, Token
from tests.waiting import until

Script = Callable[["Peer"], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
WORD = b'data: {"choices":[{"delta":{"content":"word "}}]}\n\n'
DONE = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def piece(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


WHOLE = CHUNKED + piece(WORD) + piece(DONE) + b"0\r\n\r\n"


class Peer:
    """One connection as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> bytes:
        """The next request; raises IncompleteReadError when the client has gone."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        return head + await self.reader.readexactly(length)

    async def send(self, *pieces: bytes) -> None:
        for data in pieces:
            self.writer.write(data)
            await self.writer.drain()


class Server:
    """Runs a script on each connection and counts."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.connections = 0
        self.requests = 0
        self.open = 0
        self.gone = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        peer = Peer(reader, writer)
        try:
            while True:
                await peer.request()
                self.requests += 1
                await self.script(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone.set()
        finally:
            writer.close()
            self.open -= 1


@asynccontextmanager
async def serving(
    script: Script, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Server, Client]]:
    server = Server(script)
    async with await asyncio.start_server(server, "127.0.0.1", 0, ssl=tls) as listening:
        port = listening.sockets[0].getsockname()[1]
        client = Client(Endpoint(f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1", "key"))
        try:
            yield server, client
        finally:
            await client.aclose()
            await until(lambda: not server.open, what="the end of all connections")


def question() -> ChatRequest:
    return ChatRequest("any", [{"role": "user", "content": "Hello"}], 10)


async def answers(peer: Peer) -> None:
    await peer.send(WHOLE)


async def test_connections_are_reused_one_answer_at_a_time() -> None:
    async with serving(answers) as (server, client):
        for _ in range(3):
            assert (await client.complete(question())).text == "word "
        assert (server.requests, server.connections) == (3, 1)
        await asyncio.gather(*(client.complete(question()) for _ in range(4)))
        assert (server.requests, server.connections) == (7, 4)


async def test_an_idle_connection_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.llm.timeouts.IDLE_SECONDS", 0.02)
    async with serving(answers) as (server, client):
        await client.complete(question())
        async with asyncio.timeout(150):
            await server.gone.wait()
        await client.complete(question())
        assert server.connections == 2


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
async def test_stream_chat_reads_the_same_however_the_answer_is_cut(size: int) -> None:
    async def in_pieces(peer: Peer) -> None:
        for start in range(0, len(WHOLE), size):
            await peer.send(WHOLE[start : start + size])
            await asyncio.sleep(0)  # lets the client read this piece before the next one

    async with serving(in_pieces) as (_, client):
        events = [event async for event in client.stream_chat(question())]
        assert events == [Token("word "), Done("stop")]


async def test_a_body_that_ends_with_the_connection() -> None:
    async def until_close(peer: Peer) -> None:
        await peer.send(HEAD + b"\r\n" + WORD + DONE)
        peer.writer.close()

    async with serving(until_close) as (server, client):
        for _ in range(2):
            assert (await client.complete(question())).text == "word "
        assert server.connections == 2


async def test_an_interim_answer_is_passed_over() -> None:
    async def patient(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE)

    async with serving(patient) as (_, client):
        assert (await client.complete(question())).text == "word "


async def test_a_packed_answer_is_unpacked() -> None:
    body = gzip.compress(WORD + DONE)

    async def packed(peer: Peer) -> None:
        head = HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
        await peer.send(head + body)

    async with serving(packed) as (_, client):
        assert (await client.complete(question())).text == "word "


async def test_closing_an_answer_closes_the_connection_at_once() -> None:
    async def endless(peer: Peer) -> None:
        await peer.send(CHUNKED + piece(WORD))
        await peer.reader.readexactly(1)

    async with serving(endless) as (server, client):
        stream = client.stream_chat(question())
        await anext(stream)
        assert not server.gone.is_set()
        await stream.aclose()  # type: ignore[attr-defined]
        async with asyncio.timeout(150):
            await server.gone.wait()


@pytest.mark.parametrize("begun", [False, True])
async def test_cancelling_closes_the_connection_at_once(begun: bool) -> None:
    asked = asyncio.Event()

    async def silent(peer: Peer) -> None:
        if begun:
            await peer.send(CHUNKED + piece(WORD))
        asked.set()
        await peer.reader.readexactly(1)

    async with serving(silent) as (server, client):
        task = asyncio.create_task(client.complete(question()))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(150):
            await server.gone.wait()


async def test_a_new_connection_that_breaks_is_not_tried_again() -> None:
    async def hangs_up(peer: Peer) -> None:
        peer.writer.close()

    async with serving(hangs_up) as (server, client):
        with pytest.raises(errors.Unreachable):
            await client.complete(question())
        assert server.requests == 1


@pytest.mark.parametrize("sent", [CHUNKED, CHUNKED + piece(WORD)])
async def test_after_the_first_byte_nothing_is_sent_again(sent: bytes) -> None:
    async def breaks_the_second_time(peer: Peer) -> None:
        if server.requests == 1:
            await peer.send(WHOLE)
        else:
            await peer.send(sent)
            peer.writer.close()

    async with serving(breaks_the_second_time) as (server, client):
        await client.complete(question())
        with pytest.raises((errors.CutOff, errors.Unreachable)):
            await client.complete(question())
        assert (server.requests, server.connections) == (2, 1)


async def test_a_reused_connection_that_was_closed_is_replaced() -> None:
    async def hangs_up_on_the_second(peer: Peer) -> None:
        if server.requests == 2:
            peer.writer.close()
        else:
            await peer.send(WHOLE)

    async with serving(hangs_up_on_the_second) as (server, client):
        await client.complete(question())
        # Reused, closed by the server on seeing the request, then sent over a new one.
        assert (await client.complete(question())).text == "word "
        assert (server.requests, server.connections) == (3, 2)


async def test_the_servers_own_routes_replace_a_closed_connection_too() -> None:
    async def hangs_up_on_the_second(peer: Peer) -> None:
        if server.requests == 2:
            peer.writer.close()
        else:
            await peer.send(JSON_HEAD, b"content-length: 2\r\n\r\n{}")

    async with serving(hangs_up_on_the_second) as (server, client):
        assert await client.post("/tokenize", {}) == {}
        assert await client.post("/tokenize", {}) == {}
        assert (server.requests, server.connections) == (3, 2)


async def test_connections_that_were_closed_together_are_all_replaced() -> None:
    """As llama.cpp closes each after 100 requests."""
    used: set[Peer] = set()

    async def hangs_up_on_its_second(peer: Peer) -> None:
        if peer in used:
            peer.writer.close()
        else:
            used.add(peer)
            await peer.send(WHOLE)

    async with serving(hangs_up_on_its_second) as (server, client):
        await asyncio.gather(*(client.complete(question()) for _ in range(3)))
        assert server.connections == 3
        assert (await client.complete(question())).text == "word "
        assert (server.requests, server.connections) == (7, 4)


async def hangs_up_on_the_second(
    peer: Peer, server: Server, first: Callable[[], Awaitable[None]]
) -> None:
    if server.requests == 1:
        await first()
    elif server.requests == 2:
        peer.writer.close()
    else:
        await peer.send(WHOLE)


async def test_a_connection_is_reused_right_after_a_long_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is in the pool from the end of an answer on, not from its beginning."""
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: real() + ahead)

    async def script(peer: Peer) -> None:
        async def long() -> None:
            nonlocal ahead
            await peer.send(CHUNKED, piece(WORD))
            await is_read.wait()
            ahead += 2 * timeouts.REUSE_SECONDS
            await peer.send(piece(DONE), b"0\r\n\r\n")

        await hangs_up_on_the_second(peer, server, long)

    is_read = asyncio.Event()
    async with serving(script) as (server, client):
        async for _ in client.stream_chat(question()):
            is_read.set()
        assert (await client.complete(question())).text == "word "
        assert (server.requests, server.connections) == (3, 2)


async def test_a_connection_is_reused_right_after_an_error() -> None:
    body = b'{"error": {"message": "Context size has been exceeded."}}'
    head = b"HTTP/1.1 500 Oh\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"

    async def script(peer: Peer) -> None:
        await hangs_up_on_the_second(peer, server, lambda: peer.send(head % len(body), body))

    async with serving(script) as (server, client):
        with pytest.raises(errors.LLMError, match="shared context"):
            await client.complete(question())
        assert (await client.complete(question())).text == "word "
        assert (server.requests, server.connections) == (3, 2)


async def test_no_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(peer: Peer) -> None:
        await peer.reader.readexactly(1)

    monkeypatch.setattr("apps.llm.timeouts.FIRST_BYTE_SECONDS", 0.05)
    async with serving(silent) as (_, client):
        with pytest.raises(errors.Stalled, match="did not respond in time"):
            await client.complete(question())


async def test_a_gap_in_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that is put forward: however late this machine comes to a piece, it is in time."""
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: real() + ahead)
    is_read = asyncio.Event()

    async def falls_silent(peer: Peer) -> None:
        nonlocal ahead
        await peer.send(CHUNKED)
        for _ in range(4):
            await peer.send(piece(WORD))
            await is_read.wait()
            is_read.clear()
            ahead += 0.6 * timeouts.GAP_SECONDS  # four together are longer than one gap may be
        await peer.reader.readexactly(1)

    async with serving(falls_silent) as (_, client):
        stream = client.stream_chat(question())
        for _ in range(4):
            assert await anext(stream) == Token("word ")
            is_read.set()
        last = asyncio.ensure_future(anext(stream))

        def is_given_up() -> bool:
            nonlocal ahead
            ahead += timeouts.GAP_SECONDS
            return last.done()

        await until(is_given_up)
        with pytest.raises(errors.Stalled, match="stopped sending"):
            await last


async def test_reply_that_is_no_http_is_unreachable() -> None:
    async def nonsense(peer: Peer) -> None:
        await peer.send(b"SSH-2.0-OpenSSH\r\n\r\n")

    async with serving(nonsense) as (server, client):
        with pytest.raises(errors.Unreachable):
            await client.complete(question())
        assert server.requests == 1


async def test_a_slow_reader_holds_the_server_back() -> None:
    sent = 0

    async def floods(peer: Peer) -> None:
        nonlocal sent
        await peer.send(CHUNKED)
        while sent < 100_000_000:
            await peer.send(piece(WORD * 1000))
            sent += len(WORD) * 1000

    async with serving(floods) as (_, client):
        stream = client.stream_chat(question())
        await anext(stream)
        before = -1

        def is_held_back() -> bool:
            nonlocal before
            before, last = sent, before
            return before == last

        await until(is_held_back)
        held = sent
        assert held < 50_000_000
        for _ in range(1_100_000):
            if sent > held:
                break
            await anext(stream)
        assert sent > held
        await stream.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("watched", [True, False])
async def test_comments_alone_are_no_answer_for_ever(
    monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    monkeypatch.setattr("apps.llm.timeouts.QUIET_SECONDS", 0.3)

    async def pings(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            await peer.send(b": ping\n\n")
            await asyncio.sleep(0.01)  # pings come now and then, for as long as one listens

    async def ask(client: Client) -> None:
        if watched:
            _ = [event async for event in client.stream_chat(question())]
        else:
            await client.complete(question())

    async with serving(pings) as (_, client), asyncio.timeout(150):
        with pytest.raises(errors.Stalled, match="stopped sending"):
            await ask(client)


async def test_over_tls(tmp_path: Path, settings: Settings) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    async with serving(answers, context) as (server, client):
        with pytest.raises(errors.CertificateRefused, match="certificate is not trusted: self"):
            await client.complete(question())
        settings.CA_FILE = str(tmp_path / "server.pem")
        trusting = Client(client.endpoint)
        assert (await trusting.complete(question())).text == "word "
        assert (await trusting.complete(question())).text == "word "
        assert server.requests == 2
        await trusting.aclose()


async def test_a_file_of_certificates_that_is_none(tmp_path: Path, settings: Settings) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    settings.CA_FILE = str(file)
    client = Client(Endpoint("https://127.0.0.1:1/v1"))
    with pytest.raises(errors.CertificateRefused, match=r"WORKBENCH_CA_FILE: .*ca.pem is not"):
        await client.complete(question())
    await client.aclose()


async def test_https_where_http_is_spoken() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        client = Client(Endpoint(f"https://127.0.0.1:{port}/v1"))
        with pytest.raises(errors.CertificateRefused, match="not over TLS"):
            await client.complete(question())
        await client.aclose()


def self_signed(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return file


async def test_proxy_of_the_environment_is_used_unless_the_host_is_exempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(WHOLE)
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(proxy, "127.0.0.1", 0) as listening,
        serving(answers) as (server, direct),
    ):
        monkeypatch.setenv(
            "http_proxy", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        )
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert (await direct.complete(question())).text == "word "
        assert (server.requests, seen) == (1, [])
        monkeypatch.setenv("no_proxy", "")
        proxied = Client(Endpoint("http://model.invalid/v1", "key"))
        assert (await proxied.complete(question())).text == "word "
        await proxied.aclose()
        assert server.requests == 1
        assert seen[0].startswith(b"POST http://model.invalid/v1/chat/completions HTTP/1.1\r\n")


async def test_pool_is_wider_than_the_librarys_default() -> None:
    together = asyncio.Barrier(120)

    async def wait_for_all(peer: Peer) -> None:
        await together.wait()
        await peer.send(WHOLE)

    async with serving(wait_for_all) as (server, client), asyncio.timeout(150):
        await asyncio.gather(*(client.complete(question()) for _ in range(120)))
        assert server.connections == 120
