"""A proxy with several servers is told which conversation a request belongs to."""

import pytest
from django.test import AsyncClient

from apps.runtime.async_db import in_db
from apps.servers.models import DefaultServer, Use
from tests.chat.conftest import ask, ask_in, events_of
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Standin

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("kind", "is_named"), [("olla", True), ("litellm", False)])
async def test_each_chat_has_a_session_of_its_own_at_olla_alone(
    alice_api: AsyncClient, llama: LlamaProcess, kind: str, is_named: bool
) -> None:
    with Standin(kind, llama) as standin:
        server = await in_db(server_at, standin)
        await in_db(lambda: DefaultServer.objects.create(use=Use.CHAT, server=server))
        first, answer = await ask(alice_api)
        await events_of(alice_api, answer)
        await events_of(alice_api, await ask_in(alice_api, first))
        second, answer = await ask(alice_api)
        await events_of(alice_api, answer)
        asked = [one for one in standin.asked if one["path"].endswith("/chat/completions")]
    expected = [f"workbench-chat-{pk}" if is_named else "" for pk in (first, first, second)]
    assert [one["session"] for one in asked] == expected
