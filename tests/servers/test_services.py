"""Defaults, targets, and what is shown of the slots."""

from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from apps.llm.client import ChatRequest, client_for
from apps.llm.events import Token
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers import services
from apps.servers.api import slots_with_users
from apps.servers.models import Kind, Server, State, Use
from apps.servers.probing.refresh import refresh_server
from apps.servers.services import hold_slot
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Model, Standin

pytestmark = pytest.mark.django_db(transaction=True)


def several_models(**fields: Any) -> Server:
    models = [
        {"id": "embed", "embeddings": True},
        {"id": "chat", "embeddings": False},
        {"id": "other", "embeddings": None},
    ]
    return Server.objects.create(name="s", stored_facts={"models": models}, **fields)


class TestDefaults:
    def test_a_server_and_a_model_for_each_use(self) -> None:
        server = several_models()
        services.set_default(server, Use.CHAT, "other")
        services.set_default(server, Use.GENERATION)
        assert services.default_target(Use.CHAT).model == "other"
        assert services.default_target(Use.GENERATION).model == "chat"
        services.set_default(server, Use.CHAT)
        assert services.default_target(Use.CHAT).model == "chat"

    @pytest.mark.parametrize(
        ("use", "model"),
        [(Use.CHAT, "chat"), (Use.GENERATION, "chat"), (Use.EMBEDDINGS, "embed"), (None, "chat")],
    )
    def test_the_first_that_suits_the_use(self, use: Use | None, model: str) -> None:
        assert services.choose_target(several_models(), use=use).model == model

    def test_none_suits(self) -> None:
        server = Server(stored_facts={"models": [{"id": "m", "embeddings": False}]})
        assert services.choose_target(server, use=Use.EMBEDDINGS).model == "m"
        assert services.choose_target(Server(), use=Use.CHAT).model == "default"

    def test_a_model_that_was_chosen_is_taken(self) -> None:
        assert services.choose_target(several_models(), "x", Use.CHAT).model == "x"


@pytest.mark.usefixtures("loop_closed")
class TestSlots:
    async def test_llama_server(self, server: Server) -> None:
        found = await services.read_slots(await refresh_server(server))
        assert [slot.id for slot in found] == [0, 1, 2, 3]
        assert {slot.model for slot in found} == set(server.model_ids)
        assert {slot.context for slot in found} == {4096}

    async def test_a_server_that_is_away_is_not_asked(self, server: Server) -> None:
        server.state = State.UNREACHABLE
        assert await services.read_slots(server) == []

    async def test_a_router_shows_those_of_loaded_models(self, llama: LlamaProcess) -> None:
        models = [
            Model("a", slots=3, loaded=True),
            Model("b"),
            Model("asleep", slots=2, sleeping=True),
        ]
        with Standin("router", llama, models=models) as router:
            server = await refresh_server(await in_db(server_at, router))
            found = await services.read_slots(server)
            assert [(slot.model, slot.id) for slot in found] == [("a", n) for n in range(3)]
            assert await services.read_slots(server, "b") == []
            assert len(await services.read_slots(server, "a")) == 3
            assert router.loads == []
            assert router.states == {"a": "loaded", "b": "unloaded", "asleep": "sleeping"}

    @pytest.mark.parametrize(("ttl", "slots"), [(0, 3), (300, 0)])
    async def test_llama_swap_unless_that_keeps_a_model_loaded(
        self, llama: LlamaProcess, ttl: int, slots: int
    ) -> None:
        models = [Model("a", slots=3, loaded=True, ttl=ttl), Model("b")]
        with Standin("llama-swap", llama, models=models) as swap:
            server = await refresh_server(await in_db(server_at, swap))
            assert len(await services.read_slots(server)) == slots
            assert swap.loads == []

    async def test_a_sleeping_llama_server_is_not_woken(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await refresh_server(server)
        asked: list[str] = []

        async def get(_: object, path: str) -> Any:
            asked.append(path)
            return {"is_sleeping": True}

        monkeypatch.setattr("apps.llm.client.Client.get", get)
        assert await services.read_slots(server) == []
        assert asked == ["/props"]

    async def test_olla_shows_none(self, llama: LlamaProcess) -> None:
        with Standin("olla", llama) as olla:
            server = await refresh_server(await in_db(server_at, olla, parallel=3))
            assert await services.read_slots(server) == []
            assert (server.kind, server.slots_of("m")) == (Kind.OLLA, 3)
            assert server.slots_source("m") == "set by you"


class TestSettings:
    @pytest.mark.parametrize("unified", [True, False])
    def test_the_settings_may_state_that_the_cache_is_shared(
        self, settings: Any, unified: bool
    ) -> None:
        settings.LLM_BASE_URL, settings.LLM_KV_UNIFIED = "http://127.0.0.1:1", unified
        settings.EMBED_BASE_URL = "http://127.0.0.1:2"
        chat, embeddings = services.configure_servers()
        assert (chat.unified(), chat.unified_source()) == (unified, "set by environment variable")
        assert embeddings.kv_unified is None

    def test_what_a_person_stated_stays_while_the_address_does(self, settings: Any) -> None:
        settings.LLM_BASE_URL, settings.LLM_KV_UNIFIED = "http://127.0.0.1:1", None
        services.configure_servers()
        Server.objects.update(kv_unified=False)
        assert services.configure_servers()[0].kv_unified is False
        settings.LLM_BASE_URL = "http://127.0.0.1:2"
        assert services.configure_servers()[0].kv_unified is None


@pytest.mark.usefixtures("loop_closed")
class TestWhoUsesASlot:
    async def used_by(self, server: Server, user: int, *, staff: bool, ours: bool) -> list[Any]:
        """What is told of the busy slots while one request runs."""
        request = ChatRequest("m", [{"role": "user", "content": "Tell a story"}], 2000)
        label = hold_slot(server, lane=Lane.BATCH, tokens=2100, label="Reviews v2", owner=7)
        async with AsyncExitStack() as stack:
            if ours:
                await stack.enter_async_context(label)
            answer = client_for(server.endpoint).stream_chat(request)
            await stack.enter_async_context(aclosing(answer))  # type: ignore[type-var]
            async for event in answer:
                if isinstance(event, Token):
                    break
            found = await slots_with_users(server, user, staff)
        return [slot.used_by for slot in found if slot.busy]

    @pytest.mark.parametrize(
        ("user", "staff", "ours", "told"),
        [
            (7, False, True, "Reviews v2"),
            (8, True, True, "Reviews v2"),
            (8, False, True, "batch"),  # whose job it is, and what it is called, is theirs
            (7, True, False, "another program"),
        ],
    )
    async def test_slot_user_is_named_to_those_who_may_know(
        self, server: Server, user: int, staff: bool, ours: bool, told: str
    ) -> None:
        await refresh_server(server)
        assert await self.used_by(server, user, staff=staff, ours=ours) == [told]
