"""A connection to a server of tools. The only module that imports `mcp`.

A command is started for each connection and ended with it. If this process dies without ending
it, a shell of a few hundred kilobytes in the command's own process group notices within a second
and kills the group: not every server ends when its input does.
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
from apps.core.schemas.json_types import JsonObject
from apps.mcp.models import Target, Transport

CONNECT_SECONDS = 30.0
READ_SECONDS = 120.0
OUTPUT_CHARACTERS = 400
# Bytes of one response, before it is decoded. Results are cut to far less.
MAX_BYTES = 10 * 1024 * 1024

# "$$" is the command: the shell becomes it. The subshell watches both processes.
WATCHDOG_SCRIPT = """
(
  while kill -0 "$WORKBENCH_PROCESS" && kill -0 $$; do sleep 1; done
  kill -s KILL -- "-$$"
) </dev/null >/dev/null 2>&1 &
exec "$@"
"""


class ToolServerUnavailable(Exception):
    """The server cannot be used now. The message is a sentence with the reason.

    Args:
        output: the last output of its command, which may contain a key: for admins only.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Connection(Protocol):
    """The used part of the library's client."""

    async def list_tools(self, *, cursor: str | None = None) -> Any: ...

    async def call_tool(self, name: str, arguments: JsonObject | None = None) -> Any: ...


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[Connection]:
    """Yield a connection that is ready for use. The task that enters it must also leave it.

    Raises:
        ToolServerUnavailable: the connection failed, also while it was in use.
    """
    mcp: Any = await asyncio.to_thread(_library)  # a second on a cold disk
    error_statuses: list[int] = []
    with cast(TextIO, tempfile.TemporaryFile("w+", errors="replace")) as stderr:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(CONNECT_SECONDS):
                    transport = await _transport(mcp, target, stderr, error_statuses, stack)
                    client = mcp.Client(
                        transport,
                        read_timeout_seconds=READ_SECONDS,
                        client_info=mcp.types.Implementation(name="Workbench", version="1"),
                        cache=None,
                    )
                    connection: Connection = await stack.enter_async_context(client)
                yield connection
        except Exception as error:
            output = _last_output(stderr) if target.transport == Transport.STDIO else ""
            raise ToolServerUnavailable(
                _error_message(error, target, output, error_statuses), output
            ) from error


def refusal_reason(error: BaseException) -> str | None:
    """Return the server's reason for refusing a call; None if the connection failed."""
    mcp: Any = _library()
    if not isinstance(error, mcp.MCPError) or error.code == mcp.types.CONNECTION_CLOSED:
        return None
    return str(error) or "No reason given."


def _library() -> Any:
    import mcp  # noqa: TID251 - here and nowhere else

    return mcp


async def _transport(
    mcp: Any, target: Target, stderr: TextIO, error_statuses: list[int], stack: AsyncExitStack
) -> Any:
    if target.transport == Transport.STDIO:
        return _process(mcp, target, stderr)
    from mcp.client.streamable_http import streamable_http_client  # noqa: TID251

    async def record_status(response: httpx2.Response) -> None:
        # The library does not report it.
        if response.status_code >= 400:
            error_statuses.append(response.status_code)

    client = guarded_client(
        Limits(CONNECT_SECONDS, READ_SECONDS, MAX_BYTES),
        allow_private=target.allow_private,
        headers=dict(target.headers),
        on_response=record_status,
    )
    await stack.enter_async_context(client)
    return streamable_http_client(target.url, http_client=client)


def _process(mcp: Any, target: Target, stderr: TextIO) -> Any:
    from mcp.client.stdio import stdio_client  # noqa: TID251

    if not settings.MCP_COMMANDS:
        raise ToolServerUnavailable("Commands are disabled (WORKBENCH_MCP_COMMANDS).")
    if not target.command:
        raise ToolServerUnavailable("No command set.")
    parameters = mcp.StdioServerParameters(
        command="/bin/sh",
        args=["-c", WATCHDOG_SCRIPT, "sh", *target.command],
        env={**dict(target.environment), "WORKBENCH_PROCESS": str(os.getpid())},
        encoding_error_handler="replace",
    )
    return stdio_client(parameters, errlog=stderr)


def _flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _flatten(inner)
    else:
        yield error


def _last_output(stderr: TextIO) -> str:
    stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, stderr.tell() - 4 * OUTPUT_CHARACTERS))
    return " ".join(stderr.read().split())[-OUTPUT_CHARACTERS:]


def _error_message(
    error: BaseException, target: Target, output: str, error_statuses: list[int]
) -> str:
    leaves = list(_flatten(error))
    for leaf in leaves:
        if isinstance(leaf, ToolServerUnavailable | OutgoingError):
            return str(leaf)
    if error_statuses:
        return _status_message(error_statuses[-1])
    if any(isinstance(leaf, httpx2.TransportError) for leaf in leaves):
        return (
            "The tool server is not responding. Check that it is running and that the "
            "address is correct."
        )
    if target.transport == Transport.STDIO and output:
        return "The command did not respond."
    if any(isinstance(leaf, TimeoutError) for leaf in leaves):
        return f"The tool server did not respond within {CONNECT_SECONDS:g} seconds."
    reason = str(leaves[0]).strip(" .") or type(leaves[0]).__name__
    return f"Connection failed: {reason[:OUTPUT_CHARACTERS]}."


def _status_message(status: int) -> str:
    if status in {401, 403}:
        return f"The API key is missing or was rejected ({status}). Update it under Edit."
    return f"The address returned {status}. Check that it is the address of an MCP server."
