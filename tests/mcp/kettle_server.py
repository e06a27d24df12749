"""A real MCP server, written with the official package: `python kettle_server.py [PORT [KEY]]`.

Without a port it speaks over its input and output.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer  # noqa: TID251 - it is the other side
from mcp.types import ImageContent, TextContent  # noqa: TID251

server = MCPServer("kettle", log_level="ERROR")
poured = 0


@server.tool()
def pour(cups: int) -> str:
    """Pours tea, and says how many cups there were in all."""
    global poured
    poured += cups
    return f"{poured} cups"


@server.tool(title="Break")
def break_it() -> str:
    """Fails."""
    raise ValueError("The kettle is broken.")


@server.tool()
async def hang() -> str:
    """Never ends."""
    if told := os.environ.get("KETTLE_HANGS_FILE"):
        Path(told).touch()
    await asyncio.Event().wait()
    return "never"


@server.tool()
def story(characters: int) -> str:
    """A long one."""
    return "x" * characters


@server.tool()
def secret() -> str:
    """What its environment says."""
    return os.environ.get("KETTLE", "nothing")


@server.tool()
def die() -> str:
    """Ends the process in the middle of a call."""
    os._exit(3)


@server.tool()
def picture() -> list[Any]:
    """A picture and a word."""
    picture = ImageContent(type="image", data="aGk=", mime_type="image/png")
    return [TextContent(type="text", text="A kettle:"), picture]


def serve(port: int, key: str) -> None:
    inner = server.streamable_http_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if (
            key
            and scope["type"] == "http"
            and headers.get(b"authorization") != f"Bearer {key}".encode()
        ):
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await inner(scope, receive, send)

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    if pid_file := os.environ.get("KETTLE_PID_FILE"):
        Path(pid_file).write_text(str(os.getpid()))
    if len(sys.argv) > 1:
        serve(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
    else:
        server.run("stdio")
