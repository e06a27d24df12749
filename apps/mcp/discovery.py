"""Asks a server for its tools, and keeps of them what a model can be given."""

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
from apps.mcp.connection import Away, Connection
from apps.mcp.models import ToolServer
from apps.runtime.async_db import in_db

MOST_TOOLS = 100
PAGES = 20
DESCRIPTION_CHARACTERS = 2000
MOST_TOLD = 1000
MOST_LEFT_OUT = 20
LOOK_SECONDS = 30.0  # for all of it: a page waits
NAME_CHARACTERS = 64  # what the OpenAI API takes


async def look(server: ToolServer) -> ToolServer:
    """Asks now, and saves what it said. Never raises for a server that is away: it says so.

    If it was changed meanwhile, what the old one said is forgotten.
    """
    reached = server.reached()
    try:
        async with (
            asyncio.timeout(LOOK_SECONDS),
            mcp_connection.connect(await in_db(server.target)) as connection,
        ):
            told = await _all_tools(connection)
    except TimeoutError:
        server.error = f"It did not say within {LOOK_SECONDS:.0f} seconds which tools it has."
        server.error_words = ""
        server.error_since = server.error_since or timezone.now()
    except (Away, SecretLost) as error:
        server.error, server.error_words = str(error), getattr(error, "words", "")
        server.error_since = server.error_since or timezone.now()
    else:
        server.tools, server.left_out = await asyncio.to_thread(kept, server.slug, told)
        server.looked, server.error, server.error_since = timezone.now(), "", None
        server.error_words = ""
    await in_db(_save, server, reached)
    return server


def _save(server: ToolServer, reached: dict[str, str]) -> None:
    ToolServer.objects.filter(pk=server.pk, **reached).update(**server.as_seen())


async def _all_tools(connection: Connection) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await connection.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST_TOLD:
            break
    return found


def kept(slug: str, told: Iterable[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The tools as they are stored, by name, and which were left out with the reason."""
    found: dict[str, dict[str, Any]] = {}
    left_out: list[str] = []
    for tool in sorted(told, key=lambda tool: str(tool.name)):
        if problem := schema_problem(tool.input_schema):
            left_out.append(f"{tool.name[:100]}: {problem}")
            continue
        if len(found) == MOST_TOOLS:
            left_out.append(f"Too many tools: only the first {MOST_TOOLS} by name are used.")
            break
        name = name_of(slug, tool.name)
        found[name] = {
            "name": name,
            "tool": tool.name,
            "title": (tool.title or tool.name)[:100],
            "description": (tool.description or "").strip()[:DESCRIPTION_CHARACTERS],
            "parameters": tool.input_schema,
        }
    if (more := len(left_out) - MOST_LEFT_OUT) > 0:
        left_out = [*left_out[:MOST_LEFT_OUT], f"{more:,} more were left out."]
    return [found[name] for name in sorted(found)], left_out


def name_of(slug: str, tool: str) -> str:
    """What a model calls it: no two tools have the same, and each keeps its own for ever."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", tool)
    name = f"{slug}{IN_GROUP}{clean}"
    if clean == tool and len(name) <= NAME_CHARACTERS:
        return name
    mark = hashlib.sha256(tool.encode()).hexdigest()[:6]
    return f"{name[: NAME_CHARACTERS - 7]}_{mark}"
