"""The built-in tools: calculator, clock, chat search, web pages."""

from datetime import UTC, datetime
from typing import TypedDict
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth.models import User

from apps.chat.conversation_list import search
from apps.chat.tools import arithmetic, fetching
from apps.core.tools import Tool, ToolError, parameters, register
from apps.runtime.async_db import in_db

MAX_HITS = 10


class Calculation(TypedDict):
    expression: str


class Place(TypedDict, total=False):
    time_zone: str


class ChatSearch(TypedDict):
    words: str


class WebPage(TypedDict):
    url: str


async def calculator(user: User, arguments: Calculation) -> str:
    try:
        return arithmetic.calculate(arguments["expression"])
    except arithmetic.BadExpression as error:
        raise ToolError(str(error)) from error


async def date_and_time(user: User, arguments: Place) -> str:
    name = arguments.get("time_zone") or "UTC"
    try:
        zone = UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ToolError(
            f"Unknown time zone “{name}”. Use a name such as Europe/Berlin or UTC."
        ) from error
    return f"{datetime.now(zone):%A, %Y-%m-%d %H:%M:%S} {name}"


async def search_conversations(user: User, arguments: ChatSearch) -> str:
    hits = await in_db(search.find, user, arguments["words"], limit=MAX_HITS)
    if not hits:
        return "Nothing was found. All words must occur in one message; try fewer."
    return "\n".join(
        f"- “{hit.title}”{f' ({hit.role})' if hit.role else ''}: "
        + "".join(part.text for part in hit.snippet)
        for hit in hits
    )


async def fetch_url(user: User, arguments: WebPage) -> str:
    return await fetching.fetch(arguments["url"], allow_private=settings.FETCH_PRIVATE_URLS)


TOOLS = (
    Tool(
        name="calculator",
        title="Calculator",
        description="Works out an arithmetic expression exactly. Use it for any sum beyond "
        f"the trivial. Knows + - * / // % ** ( ), pi, e and {arithmetic.FUNCTIONS}.",
        parameters=parameters(
            expression={"type": "string", "description": "For example: 2 * (3 + sqrt(16))"}
        ),
        run="apps.chat.tools.builtin.calculator",
        seconds=5,
    ),
    Tool(
        name="date_and_time",
        title="Date and time",
        description="Says what day and time it is now.",
        parameters=parameters(
            [], time_zone={"type": "string", "description": "Like Europe/Berlin; else UTC."}
        ),
        run="apps.chat.tools.builtin.date_and_time",
        seconds=5,
    ),
    Tool(
        name="search_conversations",
        title="Search your chats",
        description="Searches what this person and you said in earlier conversations. Finds "
        "messages with all the words.",
        parameters=parameters(words={"type": "string", "minLength": 1, "maxLength": 300}),
        run="apps.chat.tools.builtin.search_conversations",
    ),
    Tool(
        name="fetch_url",
        title="Fetch a web page",
        description="Reads the text of a web page or file at an http or https address.",
        parameters=parameters(url={"type": "string", "maxLength": fetching.MAX_URL}),
        run="apps.chat.tools.builtin.fetch_url",
        needs_approval=True,
        is_there=lambda: settings.FETCH_URLS,
    ),
)


def register_all() -> None:
    """Register the built-in tools."""
    for tool in TOOLS:
        register(tool)
