"""The tools of all servers, as the chat offers them."""

from functools import partial

from django.contrib.auth.models import User
from django.utils import timezone

from apps.core.crypto import SecretLost
from apps.core.schemas.json_types import JsonObject
from apps.core.tools import Tool, ToolError
from apps.mcp import results, sessions
from apps.mcp.connection import ToolServerUnavailable
from apps.mcp.models import Target, ToolServer
from apps.runtime.async_db import in_db

CALL_SECONDS = 60.0


def tools_for(person: int) -> list[Tool]:
    """Return the tools of all enabled servers that this person sees.

    Tools of an unavailable server are included, so that prompts do not change.
    """
    return [
        Tool(
            name=tool["name"],
            title=tool["title"],
            description=tool["description"],
            parameters=tool["parameters"],
            run=partial(call_tool, server.pk, tool["tool"]),
            needs_approval=True,
            seconds=CALL_SECONDS,
            group=server.group,
            trouble=server.error,
            source=f"mcp:{server.pk}",
        )
        for server in ToolServer.objects.usable_by(person)
        for tool in server.tools
    ]


async def call_tool(server: int, tool: str, user: User, arguments: JsonObject) -> str:
    """Call a tool.

    Raises:
        ToolError: the call failed; the message is a sentence for the model.
    """
    name, target = await in_db(_target, server, user)
    try:
        result = await sessions.call(target, user.pk, tool, arguments)
    except ToolServerUnavailable as error:
        await in_db(_record_error, server, str(error), error.output)
        raise ToolError(f"{name} is not available. {error} Continue without it.") from error
    except sessions.CallRefused as error:
        raise ToolError(str(error)) from error
    await in_db(_record_error, server, "")
    text = results.result_text(result)
    if result.is_error:
        raise ToolError(text)
    return text


def _target(pk: int, user: User) -> tuple[str, Target]:
    server = ToolServer.objects.usable_by(user.pk).filter(pk=pk).first()
    if server is None:
        raise ToolError("This tool no longer exists. Continue without it.")
    try:
        return server.name, server.target()
    except SecretLost as error:
        raise ToolError(f"{server.name} cannot be used: the stored key cannot be read.") from error


def _record_error(pk: int, error: str, output: str = "") -> None:
    """Save the error of the last call for the page; "" clears it."""
    server = ToolServer.objects.filter(pk=pk)
    if error:
        server.filter(error="").update(error_since=timezone.now())
        server.update(error=error, error_output=output)
    else:
        server.exclude(error="").update(error="", error_output="", error_since=None)
