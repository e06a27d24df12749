"""The answer to a program: a model server's headers and body, or an error of the gateway."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.gateway.errors import GatewayError, error_body, error_headers
from apps.gateway.routes import Dialect
from apps.gateway.usage.record import RequestRecord

Send = Callable[[dict[str, Any]], Awaitable[None]]

# How often the request gave its slot to others and began again, or went on where it was; not sent
# where it did not.
RESTARTS_HEADER = b"x-workbench-restarts"
CONTINUED_HEADER = b"x-workbench-continued"
_DROPPED = frozenset(
    {
        *("alt-svc", "connection", "content-encoding", "content-length", "date", "keep-alive"),
        *("server", "set-cookie", "strict-transport-security", "trailer", "transfer-encoding"),
        *("upgrade", "via"),
    }
)


@dataclass
class Answer:
    """What goes to the program."""

    send: Send
    has_begun: bool = False
    is_events: bool = False
    has_ended: bool = False
    """All of it was handed to the web server."""
    restarts: int = 0
    """How often the request began again at the model server."""
    continued: int = 0
    """How often the server went on with it."""
    record: RequestRecord = field(default_factory=RequestRecord)

    async def forward(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin with what a model server answered."""
        sent = [*_forwarded(headers)]
        if self.restarts:
            sent.append((RESTARTS_HEADER, str(self.restarts).encode()))
        if self.continued:
            sent.append((CONTINUED_HEADER, str(self.continued).encode()))
        await self.begin(status, sent)

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.has_begun = True
        self.record.status = status
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        self.record.add(data)
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        self.has_ended = self.record.has_ended = True
        self.record.add(data)
        await self.send({"type": "http.response.body", "body": data})


def _forwarded(headers: Mapping[str, str]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers.items():
        lower = name.lower()
        if lower not in _DROPPED and not lower.startswith("access-control-"):
            yield lower.encode("latin-1"), value.encode("latin-1")
    yield b"cache-control", b"no-store"
    yield b"x-accel-buffering", b"no"  # a reverse proxy in front passes pieces on as they come


async def refuse(answer: Answer, error: GatewayError, dialect: Dialect) -> None:
    """Send an error of the gateway's own."""
    await answer.begin(error.status, error_headers(error))
    await answer.end(error_body(error, dialect))
