"""Guarded HTTP to addresses that people or models name: tool servers and web pages.

A name is resolved once, every address it has is checked, and the connection is made to that very
address: a name that resolves differently a moment later (DNS rebinding) leads nowhere. Redirects
are not followed, and proxies of the environment are not used. Replies may be made to fill our
memory: they are counted, and compressed ones are refused.
"""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache

import httpx2

_IPV4_INSIDE = [
    ipaddress.ip_network(text)  # through NAT64, IPv4-compatible, translated: the last 32 bits
    for text in ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")
]
# All global addresses ever assigned; others are for one site, one machine or experiments.
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
# For protocols; some clouds serve secrets there. Older Pythons count parts of it as public.
_IPV4_PROTOCOLS = ipaddress.ip_network("192.0.0.0/24")

ResponseHook = Callable[[httpx2.Response], Awaitable[None]]


class OutgoingError(Exception):
    """The request was refused here. The message is a sentence for people and models."""


class AddressRefused(OutgoingError):
    """The host does not exist or is in a private network."""


class ReplyRefused(OutgoingError):
    """The reply is too large or compressed."""


@dataclass(frozen=True, slots=True)
class Limits:
    connect_seconds: float
    read_seconds: float
    """The longest pause within a reply."""
    max_bytes: int | None = None
    """Of one reply; None: the caller counts."""


def guarded_client(
    limits: Limits,
    *,
    allow_private: bool,
    headers: Mapping[str, str] | None = None,
    on_response: ResponseHook | None = None,
) -> httpx2.AsyncClient:
    """Return a client whose requests raise OutgoingError where they or their replies are refused.

    Args:
        allow_private: also connect to private networks and this machine.
    """
    return httpx2.AsyncClient(
        headers=dict(headers or {}),
        event_hooks={"response": [on_response] if on_response else []},
        timeout=httpx2.Timeout(limits.connect_seconds, read=limits.read_seconds),
        transport=_GuardedTransport(allow_private=allow_private, max_bytes=limits.max_bytes),
        follow_redirects=False,
    )


def resolve(host: str, port: int, *, allow_private: bool) -> str:
    """Return the address to connect to. Blocks while the name is resolved.

    Raises:
        AddressRefused: no such host, or one of its addresses is not public.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AddressRefused(f"Host {host} not found.") from error
    addresses = [str(entry[4][0]).split("%")[0] for entry in found]
    if not allow_private and not all(map(is_public, addresses)):
        raise AddressRefused(
            f"{host} is a private address. Only public addresses can be fetched here."
        )
    return addresses[0]


def names_private_host(host: str) -> bool:
    """True if a host is this machine or in a private network by its name, without a look-up."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not is_public(host)
    except ValueError:  # a name
        return False


def is_public(address: str) -> bool:
    """True if an address belongs to the internet, also if it is an IPv4 address within IPv6."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo and parsed.teredo[1])
        if inner:
            return is_public(str(inner))
        if any(parsed in network for network in _IPV4_INSIDE):
            return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
        return parsed in _GLOBAL_IPV6 and parsed.is_global
    return parsed.is_global and not parsed.is_multicast and parsed not in _IPV4_PROTOCOLS


@cache
def _tls_context() -> object:
    return httpx2.create_ssl_context()  # loads the system's certificates: 20 ms


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, *, allow_private: bool, max_bytes: int | None) -> None:
        super().__init__(verify=_tls_context())  # type: ignore[arg-type]
        self._allow_private, self._max_bytes = allow_private, max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        address = await asyncio.to_thread(
            resolve, url.host, port, allow_private=self._allow_private
        )
        # The certificate and the Host header keep the name.
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        request.url = url.copy_with(host=address)
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise ReplyRefused("The server sent a compressed reply, which is not supported.")
        if self._max_bytes is not None:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _LimitedStream(response.stream, self._max_bytes)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    """The body of a reply, up to a number of bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream, self._max_bytes = stream, max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > self._max_bytes:
                raise ReplyRefused(f"The reply is larger than {self._max_bytes // 1024**2} MB.")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
