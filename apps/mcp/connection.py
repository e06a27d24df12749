"""A connection to a server of tools. The only module that imports `mcp`.

A command is started for each connection and ended with it. Should this process die without ending
anything, a shell of a few hundred kilobytes, in the command's own process group, sees that within
a second and kills the group: not every server reads the end of its input as its own.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, TextIO, cast

import httpx2
from django.conf import settings

from apps.core.outgoing import Limits, OutgoingError, guarded_client
from apps.mcp.models import Target, Transport

CONNECT_SECONDS = 30.0
READ_SECONDS = 120.0
LAST_WORDS = 400
# Of one answer, before it is decoded: results are cut to far less.
MOST_BYTES = 10 * 1024 * 1024

# "$$" is the command: the shell becomes it. The other one looks after both ends.
LEASH = """
(
  while kill -0 "$WORKBENCH_PROCESS" && kill -0 $$; do sleep 1; done
  kill -s KILL -- "-$$"
) </dev/null >/dev/null 2>&1 &
exec "$@"
"""


class Away(Exception):
    """It cannot be used now. The message is a sentence that says why.

    Args:
        words: what its command said last, which may hold a key: for admins alone.
    """

    def __init__(self, message: str, words: str = "") -> None:
        super().__init__(message)
        self.words = words


class Connection(Protocol):
    """What we use of the library's client."""

    async def list_tools(self, *, cursor: str | None = None) -> Any: ...

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any: ...


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[Connection]:
    """A connection, ready for use. To be left by the task that entered it.

    Raises:
        Away: it could not be made, or broke while it was in use.
    """
    mcp: Any = await asyncio.to_thread(_library)  # a second on a cold disk
    refusals: list[int] = []
    with cast(TextIO, tempfile.TemporaryFile("w+", errors="replace")) as said:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(CONNECT_SECONDS):
                    transport = await _transport(mcp, target, said, refusals, stack)
                    client = mcp.Client(
                        transport,
                        read_timeout_seconds=READ_SECONDS,
                        client_info=mcp.types.Implementation(name="Workbench", version="1"),
                        cache=None,
                    )
                    connection: Connection = await stack.enter_async_context(client)
                yield connection
        except Exception as error:
            words = _last_words(said) if target.transport == Transport.STDIO else ""
            raise Away(_sentence(error, target, words, refusals), words) from error


def failed(error: BaseException) -> str | None:
    """What a server says about a call that it refuses; None where the connection is the trouble."""
    mcp: Any = _library()
    if not isinstance(error, mcp.MCPError) or error.code == mcp.types.CONNECTION_CLOSED:
        return None
    return str(error) or "No reason given."


def _library() -> Any:
    import mcp  # noqa: TID251 - here and nowhere else

    return mcp


async def _transport(
    mcp: Any, target: Target, said: TextIO, refusals: list[int], stack: AsyncExitStack
) -> Any:
    if target.transport == Transport.STDIO:
        return _process(mcp, target, said)
    from mcp.client.streamable_http import streamable_http_client  # noqa: TID251

    async def note(response: httpx2.Response) -> None:
        # The library does not tell them.
        if response.status_code >= 400:
            refusals.append(response.status_code)

    client = guarded_client(
        Limits(CONNECT_SECONDS, READ_SECONDS, MOST_BYTES),
        allow_private=target.may_be_private,
        headers=dict(target.headers),
        on_response=note,
    )
    await stack.enter_async_context(client)
    return streamable_http_client(target.url, http_client=client)


def _process(mcp: Any, target: Target, said: TextIO) -> Any:
    from mcp.client.stdio import stdio_client  # noqa: TID251

    if not settings.MCP_COMMANDS:
        raise Away("Commands are disabled (WORKBENCH_MCP_COMMANDS).")
    if not target.command:
        raise Away("No command set.")
    parameters = mcp.StdioServerParameters(
        command="/bin/sh",
        args=["-c", LEASH, "sh", *target.command],
        env={**dict(target.environment), "WORKBENCH_PROCESS": str(os.getpid())},
        encoding_error_handler="replace",
    )
    return stdio_client(parameters, errlog=said)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _last_words(said: TextIO) -> str:
    said.seek(0, os.SEEK_END)
    said.seek(max(0, said.tell() - 4 * LAST_WORDS))
    return " ".join(said.read().split())[-LAST_WORDS:]


def _sentence(error: BaseException, target: Target, words: str, refusals: list[int]) -> str:
    found = list(_leaves(error))
    for leaf in found:
        if isinstance(leaf, Away | OutgoingError):
            return str(leaf)
    if refusals:
        return _refused(refusals[-1])
    if any(isinstance(leaf, httpx2.TransportError) for leaf in found):
        return (
            "The tool server is not responding. Check that it is running and that the "
            "address is correct."
        )
    if target.transport == Transport.STDIO and words:
        return "Its command did not answer."
    if any(isinstance(leaf, TimeoutError) for leaf in found):
        return f"The tool server did not respond within {CONNECT_SECONDS:g} seconds."
    why = str(found[0]).strip(" .") or type(found[0]).__name__
    return f"It could not be used: {why[:LAST_WORDS]}."


def _refused(status: int) -> str:
    if status in {401, 403}:
        return f"The API key is missing or was rejected ({status}). Update it under Edit."
    return f"The address returned {status}. Check that it is the address of an MCP server."
