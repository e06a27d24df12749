"""The modules that run for one streamed answer: a chat turn is read in one sitting."""

import asyncio
import threading
from dataclasses import dataclass, field

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from tests.chat.conftest import ask_in, open_with, read_events
from tests.chat.tools.tool_server import ToolServer, create_tool_server, say
from tests.repository.module_trace import ModuleTrace, documented_path

pytestmark = pytest.mark.django_db(transaction=True)

# So many modules of the chat at most run for one answer, from the request to the end of its stream:
# as many as when this was set. If there are more, merge what always goes together.
MOST_MODULES = 30
# So many of them, and of the rooms below, are the path that a newcomer reads.
MOST_ON_THE_PATH = 15
ASIDE = (
    "apps.core",  # every request passes through it
    "apps.runtime",
)

# Of pages, of failures and of values: named on the path, and not run by this turn.
NAMED_ONLY = {"apps.chat.views.conversation", "apps.servers.retry", "apps.llm.events"}


@dataclass
class FollowedServer(ToolServer):
    """Sends an answer when its events are read: those of a finished one come from the database."""

    is_followed: threading.Event = field(default_factory=threading.Event)

    async def before(self, number: int) -> None:
        await asyncio.to_thread(self.is_followed.wait, 30)


async def ask_and_follow(client: AsyncClient, server: FollowedServer, conversation: int) -> None:
    server.is_followed.clear()
    answer = await ask_in(client, conversation)
    response = await client.get(f"/api/v1/answers/{answer}/events")
    async for _ in read_events(response):
        server.is_followed.set()


async def test_a_turn_is_read_in_one_sitting(alice_api: AsyncClient) -> None:
    with FollowedServer([say("Hello there"), say("Hello again")]) as server:
        await sync_to_async(create_tool_server)(server)
        conversation = await open_with(alice_api)
        await ask_and_follow(alice_api, server, conversation)  # warms up
        with ModuleTrace() as trace:
            await ask_and_follow(alice_api, server, conversation)
    run = {module for module, _ in trace.calls}
    modules = sorted(module for module in run if not module.startswith(ASIDE))
    chat = [module for module in modules if module.startswith("apps.chat.")]
    assert "apps.chat.answering.turn" in chat
    assert len(chat) <= MOST_MODULES, "\n".join(chat)
    main = [
        module
        for module in documented_path("A chat turn, in order", until="Beside it")
        if module not in NAMED_ONLY
    ]
    assert len(main) <= MOST_ON_THE_PATH
    assert [module for module in main if module not in run] == []
