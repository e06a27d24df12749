"""The modules that run for one streamed answer: a chat turn is read in one sitting."""

import sys
import threading
from types import FrameType
from typing import Any

import pytest
from django.test import AsyncClient

from apps.servers.models import Server
from tests.chat.conftest import ask_in, events_of, open_with
from tests.chat.tools.tool_server import ToolServer, say

pytestmark = pytest.mark.django_db(transaction=True)

# So many modules of the chat at most run for one answer, from the request to the end of its stream:
# as many as when this was set. If there are more, merge what always goes together.
MOST_MODULES = 30
ASIDE = (
    "apps.core",  # every request passes through it
    "apps.runtime",
)


class Trace:
    """Collects the modules of the project whose functions are called."""

    def __init__(self) -> None:
        self.modules: set[str] = set()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("apps."):
            self.modules.add(module)

    def __enter__(self) -> "Trace":
        threading.settrace(self)
        sys.settrace(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]


async def test_a_turn_is_read_in_one_sitting(
    alice_api: AsyncClient, caller: ToolServer, caller_server: Server
) -> None:
    caller.script[:] = [say("Hello there"), say("Hello again")]
    conversation = await open_with(alice_api)
    await events_of(alice_api, await ask_in(alice_api, conversation, "Warm up"))
    with Trace() as trace:
        await events_of(alice_api, await ask_in(alice_api, conversation, "Hello"))
    modules = sorted(module for module in trace.modules if not module.startswith(ASIDE))
    chat = [module for module in modules if module.startswith("apps.chat.")]
    assert "apps.chat.answering.turn" in chat
    assert len(chat) <= MOST_MODULES, "\n".join(chat)
