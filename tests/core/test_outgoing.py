"""Addresses that a guarded client connects to. Nothing is connected to here but this machine."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.outgoing import (
    AddressRefused,
    Limits,
    ReplyRefused,
    guarded_client,
    is_public,
    resolve,
)

LIMITS = Limits(5, 5, max_bytes=1000)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True), ("2001:4860:4860::8888", True), ("64:ff9b::808:808", True),
        ("::", False), ("::7f00:1", False), ("::ffff:0:7f00:1", False), ("fec0::1", False),
        ("64:ff9b:1::1", False), ("5f00::1", False), ("192.0.0.192", False), ("ff02::1", False),
    ],
)  # fmt: skip
def test_is_public(address: str, public: bool) -> None:
    assert is_public(address) is public


@given(st.ip_addresses(v=4))
def test_is_public_sees_an_ipv4_address_in_every_ipv6_form(address: object) -> None:
    forms = [f"::ffff:{address}", f"64:ff9b::{address}", f"::ffff:0:{address}"]
    assert {is_public(form) for form in forms} == {is_public(str(address))}


@given(st.ip_addresses(network="10.0.0.0/8") | st.ip_addresses(network="fc00::/7"))
def test_is_public_is_false_in_private_networks(address: object) -> None:
    assert not is_public(str(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "10.0.0.1", "0x7f.1", "2130706433"])
def test_resolve_refuses_private_addresses_unless_they_are_allowed(host: str) -> None:
    with pytest.raises(AddressRefused, match="is a private address"):
        resolve(host, 80, allow_private=False)
    assert not is_public(resolve(host, 80, allow_private=True))


@pytest.mark.parametrize("host", ["a" * 64, "..", ""])
def test_resolve_of_what_is_no_host(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no such host")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(AddressRefused, match="not found"):
        resolve(host, 80, allow_private=True)


def test_resolve_refuses_a_name_with_one_private_address(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("8.8.8.8", 80)), (2, 1, 6, "", ("10.0.0.1", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(AddressRefused):
        resolve("example.org", 80, allow_private=False)


@asynccontextmanager
async def serving(reply: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server on this machine that gives every request this reply; its URL and the requests."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(reply)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}/x", requests


def reply(body: bytes, headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%scontent-length: %d\r\n\r\n%s" % (headers, len(body), body)


async def test_guarded_client_keeps_the_name_in_the_host_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # not used
    async with (
        serving(reply(b"hello")) as (url, requests),
        guarded_client(LIMITS, allow_private=True, headers={"x-key": "k"}) as client,
    ):
        assert (await client.get(url)).text == "hello"
    head = requests[0].lower()
    assert b"host: localhost:" in head
    assert b"x-key: k" in head
    assert b"accept-encoding: identity" in head


async def test_guarded_client_connects_to_no_private_address() -> None:
    async with serving(reply(b"secret")) as (url, requests):
        async with guarded_client(LIMITS, allow_private=False) as client:
            with pytest.raises(AddressRefused):
                await client.get(url)
        assert requests == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (reply(b"x" * 1001), "larger than"),
        (reply(gzip.compress(b"x", mtime=0), b"content-encoding: gzip\r\n"), "compressed"),
    ],
)
async def test_guarded_client_refuses_large_and_compressed_replies(
    answer: bytes, message: str
) -> None:
    async with serving(answer) as (url, _), guarded_client(LIMITS, allow_private=True) as client:
        with pytest.raises(ReplyRefused, match=message):
            await client.get(url)


async def test_guarded_client_does_not_follow_redirects() -> None:
    moved = b"HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n"
    async with serving(moved) as (url, requests):
        async with guarded_client(LIMITS, allow_private=True) as client:
            assert (await client.get(url)).status_code == 302
        assert len(requests) == 1
