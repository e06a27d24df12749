"""Asks a server for its tools and selects those that a model can call."""

import asyncio
import hashlib
import re
from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from apps.core.crypto import SecretLost
from apps.core.schemas.argument_schemas import schema_problem
from apps.core.tools import IN_GROUP
from apps.mcp import connection as mcp_connection
from apps.mcp.connection import Connection, ToolServerUnavailable
from apps.mcp.models import ToolServer
from apps.runtime.async_db import in_db

MAX_TOOLS = 100
MAX_PAGES = 20
DESCRIPTION_CHARACTERS = 2000
MAX_LISTED = 1000
MAX_SKIPPED = 20
REFRESH_SECONDS = 30.0  # for the whole check: a page waits
MAX_NAME_CHARACTERS = 64  # the limit of the OpenAI API


async def refresh_tools(server: ToolServer) -> ToolServer:
    """Ask the server for its tools and save the answer, or the error if it is unavailable.

    Nothing is saved if the server was edited meanwhile.
    """
    checked = server.connection_fields()
    try:
        async with (
            asyncio.timeout(REFRESH_SECONDS),
            mcp_connection.connect(await in_db(server.target)) as connection,
        ):
            listed = await _list_tools(connection)
    except TimeoutError:
        server.error = (
            f"The tool server did not list its tools within {REFRESH_SECONDS:.0f} seconds."
        )
        server.error_output = ""
        server.error_since = server.error_since or timezone.now()
    except (ToolServerUnavailable, SecretLost) as error:
        server.error, server.error_output = str(error), getattr(error, "output", "")
        server.error_since = server.error_since or timezone.now()
    else:
        server.tools, server.skipped_tools = await asyncio.to_thread(
            select_tools, server.slug, listed
        )
        server.checked_at, server.error, server.error_since = timezone.now(), "", None
        server.error_output = ""
    await in_db(_save, server, checked)
    return server


def _save(server: ToolServer, checked: dict[str, str]) -> None:
    ToolServer.objects.filter(pk=server.pk, **checked).update(**server.check_result())


async def _list_tools(connection: Connection) -> list[Any]:
    tools: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await connection.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) >= MAX_LISTED:
            break
    return tools


def select_tools(slug: str, listed: Iterable[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tools as they are stored, sorted by name, and a sentence per skipped one."""
    found: dict[str, dict[str, Any]] = {}
    skipped: list[str] = []
    for tool in sorted(listed, key=lambda tool: str(tool.name)):
        if problem := schema_problem(tool.input_schema):
            skipped.append(f"{tool.name[:100]}: {problem}")
            continue
        if len(found) == MAX_TOOLS:
            skipped.append(f"Too many tools: only the first {MAX_TOOLS} by name are used.")
            break
        name = tool_name(slug, tool.name)
        found[name] = {
            "name": name,
            "tool": tool.name,
            "title": (tool.title or tool.name)[:100],
            "description": (tool.description or "").strip()[:DESCRIPTION_CHARACTERS],
            "parameters": tool.input_schema,
        }
    if (more := len(skipped) - MAX_SKIPPED) > 0:
        skipped = [*skipped[:MAX_SKIPPED], f"{more:,} more were skipped."]
    return [found[name] for name in sorted(found)], skipped


def tool_name(slug: str, tool: str) -> str:
    """Return the name that models call: unique per tool, at most 64 characters, and stable."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", tool)
    name = f"{slug}{IN_GROUP}{clean}"
    if clean == tool and len(name) <= MAX_NAME_CHARACTERS:
        return name
    mark = hashlib.sha256(tool.encode()).hexdigest()[:6]
    return f"{name[: MAX_NAME_CHARACTERS - 7]}_{mark}"
