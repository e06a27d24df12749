"""Loading, unloading and warming, at each kind of server."""

import asyncio
from typing import Any

import pytest

from apps.llm import errors
from apps.llm.permits import permits_in_flight
from apps.runtime.async_db import in_db
from apps.servers.health import read_health
from apps.servers.liveness import record_stall
from apps.servers.loading import load_model as loading_load_model
from apps.servers.loading.load_model import load_model, unload_model, warm_model
from apps.servers.models import Server, State
from apps.servers.probing.refresh import refresh_server
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Model, Standin
from tests.waiting import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loop_closed")]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_load_model, "POLL_SECONDS", 0.05)


async def known(standin: Standin) -> Server:
    return await refresh_server(await in_db(server_at, standin))


def state_of(server: Server, model: str) -> str:
    return server.facts_of(model).state


TWO = [Model("a", loaded=True), Model("b", slots=2, aliases=["bee"])]


class TestRouter:
    async def test_load_and_unload(self, llama: LlamaProcess) -> None:
        with Standin("router", llama, models=TWO) as router:
            server = await known(router)
            await load_model(server, "bee")
            assert state_of(server, "b") == "loaded"
            assert router.loads == [{"model": "b", "path": "/models/load"}]
            assert server.slots_of("b") == 2
            await unload_model(server, "b")
            assert state_of(server, "b") == "unloaded"
            assert router.states == {"a": "loaded", "b": "unloaded"}

    async def test_the_state_shows_how_far_it_is(self, llama: LlamaProcess) -> None:
        with Standin("router", llama, models=TWO, load_seconds=600) as router:
            server = await known(router)
            load = asyncio.create_task(load_model(server, "b"))
            await until(lambda: state_of(server, "b") == "loading")
            assert not load.done()
            assert server.next_check_at is not None  # sooner than facts go stale
            await in_db(lambda: router.change(load_seconds=0))
            await load
            assert state_of(server, "b") == "loaded"

    async def test_what_is_done_already_is_no_failure(self, llama: LlamaProcess) -> None:
        with Standin("router", llama, models=TWO) as router:
            server = await known(router)
            await load_model(server, "a")
            await unload_model(server, "b")
            # Loaded by somebody else since we looked.
            server.stored_facts["models"][0]["state"] = "unloaded"
            await load_model(server, "a")
            assert router.loads == []

    async def test_one_that_does_not_start(self, llama: LlamaProcess) -> None:
        with Standin("router", llama, models=[Model("broken", fails=True)]) as router:
            server = await known(router)
            with pytest.raises(errors.LoadFailed, match="exit code 1"):
                await load_model(server, "broken")
            assert state_of(server, "broken") == "failed"


class TestLlamaSwap:
    async def test_a_load_is_a_token(self, llama: LlamaProcess) -> None:
        with Standin("llama-swap", llama, models=TWO) as swap:
            server = await known(swap)
            await load_model(server, "b")
            assert swap.loads == [{"model": "b", "path": "/v1/chat/completions"}]
            assert (state_of(server, "a"), state_of(server, "b")) == ("unloaded", "loaded")
            assert server.loaded_models == ["b"]
            await unload_model(server, "b")
            assert server.loaded_models == []
            assert "/api/models/unload/b" in swap.paths
        assert sum((await permits_in_flight(server.pk)).values()) == 0

    async def test_an_embedding_model_embeds(
        self, llama: LlamaProcess, llama_embeddings: LlamaProcess
    ) -> None:
        models = [Model("author/e", embeddings=True, metadata={"embeddings": True})]
        with Standin("llama-swap", llama, embeddings=llama_embeddings, models=models) as swap:
            server = await known(swap)
            await warm_model(server, "author/e")
            assert swap.loads == [{"model": "author/e", "path": "/v1/embeddings"}]
            await unload_model(server, "author/e")
            assert swap.states == {"author/e": "unloaded"}

    async def test_one_that_does_not_start(self, llama: LlamaProcess) -> None:
        with Standin("llama-swap", llama, models=[Model("broken", fails=True)]) as swap:
            server = await known(swap)
            with pytest.raises(errors.LoadFailed, match="exited prematurely"):
                await load_model(server, "broken")

    async def test_another_machines_model(self, llama: LlamaProcess) -> None:
        models = [Model("far", metadata={"peerID": "box"}, loaded=True)]
        with Standin("llama-swap", llama, models=models) as swap:
            server = await known(swap)
            with pytest.raises(errors.NotSupported, match="on another machine"):
                await unload_model(server, "far")
            await warm_model(server, "far")


class TestLlamaServer:
    async def test_warm_proves_that_it_answers(self, server: Server) -> None:
        await refresh_server(server)
        await record_stall(server.pk)
        await warm_model(server, server.model_ids[0])
        found = (await asyncio.to_thread(read_health, [server]))[server.pk]
        assert found.state == State.READY
        assert found.last_token is not None

    async def test_warm_an_embedding_server(self, embedding_server: Server) -> None:
        await refresh_server(embedding_server)
        await warm_model(embedding_server, embedding_server.model_ids[0])

    @pytest.mark.parametrize("action", [load_model, unload_model])
    async def test_server_with_one_model_neither_loads_nor_unloads(
        self, server: Server, action: Any
    ) -> None:
        await refresh_server(server)
        with pytest.raises(errors.NotSupported, match="router mode"):
            await action(server, server.model_ids[0])

    async def test_a_model_it_does_not_name(self, server: Server) -> None:
        await refresh_server(server)
        with pytest.raises(errors.UnknownModel, match="has no model 'x'"):
            await warm_model(server, "x")


@pytest.mark.parametrize("kind", ["olla", "litellm"])
async def test_a_proxy_can_only_be_warmed(llama: LlamaProcess, kind: str) -> None:
    with Standin(kind, llama) as proxy:
        server = await known(proxy)
        with pytest.raises(errors.NotSupported, match="Add the server behind it"):
            await load_model(server, "m")
        await warm_model(server, "m")
        assert proxy.most == {"m": 1}
