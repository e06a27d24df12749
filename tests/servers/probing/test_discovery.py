"""What is found out of each kind of server, and that finding it out loads nothing."""

from collections.abc import Iterator

import pytest

from apps.llm.client import Client
from apps.llm.endpoint import Endpoint
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.kinds import llama_server
from apps.servers.models import Kind, State
from apps.servers.probing.discovery import NOT_A_MODEL_SERVER, probe
from tests.llama_process import LlamaProcess
from tests.standins import Model, Standin


async def facts_of(base_url: str, key: str = "", known: ServerFacts | None = None) -> ServerFacts:
    client = Client(Endpoint(base_url, key))
    try:
        return await probe(client, known)
    finally:
        await client.aclose()


class TestLlamaServer:
    async def test_every_fact_with_its_source(self, llama: LlamaProcess) -> None:
        facts = await facts_of(llama.base_url, llama.api_key)
        assert (facts.state, facts.kind) == (State.READY, Kind.LLAMA_SERVER)
        assert (facts.slots, facts.context, facts.unified) == (4, 4096, None)
        assert facts.sources["slots"] == facts.sources["context"] == "the server's /props"
        assert facts.shows_slots
        assert facts.shows_metrics
        assert not facts.sleeping
        (model,) = facts.models
        assert (model.state, model.actions) == ("loaded", ["warm"])
        assert (model.slots, model.context) == (4, 4096)
        assert model.embeddings is False
        assert model.sources["embeddings"] == "the server's answer"
        assert model.vision is False
        assert model.abilities["system_role"] in {True, False}
        assert model.reasoning is False
        assert model.sources["reasoning"] == "its chat template"
        assert len(model.weights) == 3
        assert model.context_trained

    async def test_an_embedding_server_is_found_to_be_one(
        self, llama_embeddings: LlamaProcess
    ) -> None:
        facts = await facts_of(llama_embeddings.base_url, llama_embeddings.api_key)
        assert facts.models[0].embeddings is True
        # Two slots: -np was given, so each has its share of the cache.
        assert (facts.slots, facts.unified) == (2, False)
        assert facts.sources["unified"] == "assumed from the slot count"

    async def test_slot_files_are_asked_for_once(
        self, llama: LlamaProcess, saving_llama: LlamaProcess
    ) -> None:
        without = await facts_of(llama.base_url, llama.api_key)
        assert without.models[0].slot_files is False
        facts = await facts_of(saving_llama.base_url, saving_llama.api_key)
        (model,) = facts.models
        assert model.slot_files is True
        assert len(model.cache_key) == 16
        model.slot_files = False  # as if it had answered so
        again = await facts_of(saving_llama.base_url, saving_llama.api_key, facts)
        assert again.models[0].slot_files is False
        facts.error = "It was away."
        back = await facts_of(saving_llama.base_url, saving_llama.api_key, facts)
        assert back.models[0].slot_files is True

    async def test_four_slots_may_share_one_cache(self, llama: LlamaProcess) -> None:
        facts = await facts_of(llama.base_url, llama.api_key)
        assert (facts.slots, facts.unified) == (4, None)
        assert llama_server.KEY_ADVICE not in facts.advice
        assert facts.keyless is False

    async def test_a_wrong_key(self, llama: LlamaProcess) -> None:
        facts = await facts_of(llama.base_url, "wrong")
        assert facts.state == State.UNAUTHORIZED
        assert "key" in facts.error

    async def test_no_model_server_at_all(self, llama: LlamaProcess) -> None:
        facts = await facts_of(f"{llama.root_url}/no/such/place/v1", llama.api_key)
        assert (facts.state, facts.error) == (State.UNREACHABLE, NOT_A_MODEL_SERVER)


ROUTER_MODELS = [
    Model("chat", slots=3, context=2048, loaded=True, aliases=["c"]),
    Model("judge", slots=2),
    Model("asleep", slots=6, sleeping=True),
]


class TestRouter:
    @pytest.fixture
    def router(self, llama: LlamaProcess) -> Iterator[Standin]:
        with Standin("router", llama, models=ROUTER_MODELS, api_key="k") as standin:
            yield standin

    async def test_every_model_with_its_slots(self, router: Standin) -> None:
        facts = await facts_of(router.base_url, "k")
        assert (facts.state, facts.kind, facts.slots) == (State.READY, Kind.ROUTER, None)
        chat, judge, asleep = facts.models
        assert (chat.state, chat.slots, chat.context, chat.unified) == ("loaded", 3, 2048, False)
        assert (chat.aliases, chat.actions) == (["c"], ["unload", "warm"])
        assert chat.sources["slots"] == "the router's arguments"
        assert (facts.models_at_once, facts.sources["models_at_once"]) == (4, "the router's /props")
        assert chat.reasoning is False
        assert (judge.state, judge.slots, judge.actions) == ("unloaded", None, ["load"])
        assert (asleep.state, asleep.slots) == ("sleeping", 6)

    async def test_looking_loads_and_wakes_nothing(self, router: Standin) -> None:
        facts = await facts_of(router.base_url, "k")
        again = await facts_of(router.base_url, "k", facts)
        assert router.loads == []
        assert router.states == {"chat": "loaded", "judge": "unloaded", "asleep": "sleeping"}
        assert "/slots" not in router.paths
        queries = [asked["query"] for asked in router.asked if asked["path"] == "/props"]
        # Each look asks the router itself; the one loaded model is asked once.
        assert queries == ["", "model=chat&autoload=false", ""]
        assert again.models == facts.models

    async def test_a_model_that_did_not_start(self, llama: LlamaProcess) -> None:
        models = [Model("broken", fails=True)]
        with Standin("router", llama, models=models) as router:
            client = Client(Endpoint(router.base_url))
            await client.post("/models/load", {"model": "broken"})
            facts = await probe(client)
            while facts.models[0].state == "loading":
                facts = await probe(client)
            await client.aclose()
        assert facts.models[0].state == "failed"
        assert facts.models[0].error == "The model process ended with exit code 1."
        assert facts.models[0].actions == ["load"]

    async def test_what_was_known_stays_when_it_is_unloaded(self, router: Standin) -> None:
        facts = await facts_of(router.base_url, "k")
        client = Client(Endpoint(router.base_url, "k"))
        await client.post("/models/unload", {"model": "chat"})
        await client.aclose()
        again = await facts_of(router.base_url, "k", facts)
        assert (again.models[0].state, again.models[0].slots) == ("unloaded", 3)
        assert again.models[0].sources["slots"] == "the router's arguments (from its last run)"

    async def test_a_wrong_key(self, router: Standin) -> None:
        assert (await facts_of(router.base_url, "wrong")).state == State.UNAUTHORIZED


SWAP_MODELS = [
    Model("author/chat", slots=3, context=2048, loaded=True),
    Model("embed", embeddings=True, slots=2),
    Model("stated", metadata={"slots": 8, "n_ctx": 512}),
    Model("far", metadata={"peerID": "other-box"}),
]


class TestLlamaSwap:
    @pytest.fixture
    def swap(self, llama: LlamaProcess) -> Iterator[Standin]:
        with Standin("llama-swap", llama, models=SWAP_MODELS, api_key="k") as standin:
            yield standin

    async def test_every_model_with_its_slots(self, swap: Standin) -> None:
        facts = await facts_of(swap.base_url, "k")
        assert (facts.state, facts.kind, facts.slots) == (State.READY, Kind.LLAMA_SWAP, None)
        assert facts.concurrency_limit is not None
        assert facts.concurrency_limit[0] == 10
        chat, embed, far, stated = facts.models
        assert (chat.id, chat.state) == ("author/chat", "loaded")
        assert (chat.slots, chat.context, chat.unified) == (3, 2048, False)
        assert chat.sources["slots"] == "llama-swap's command line"
        assert chat.sources["abilities"] == "the model's /props"
        assert (embed.state, embed.slots, embed.actions) == ("unloaded", None, ["load"])
        assert (stated.slots, stated.context) == (8, 512)
        assert stated.sources["slots"] == "llama-swap's metadata"
        assert (far.state, far.actions) == ("unknown", ["warm"])

    async def test_looking_starts_nothing_and_keeps_nothing(self, swap: Standin) -> None:
        facts = await facts_of(swap.base_url, "k")
        for _ in range(3):
            facts = await facts_of(swap.base_url, "k", facts)
        assert swap.loads == []
        upstream = [path for path in swap.paths if path.startswith("/upstream")]
        # Once and never again: each request would count as use and put off its unloading.
        assert upstream == ["/upstream/author/chat/props"]
        assert "/props" not in swap.paths

    async def test_the_command_is_not_kept(self, swap: Standin) -> None:
        facts = await facts_of(swap.base_url, "k")
        assert "not-for-you" not in str(facts.to_json())

    async def test_a_command_that_is_no_llama_server(self, llama: LlamaProcess) -> None:
        models = [Model("v", loaded=True, command="vllm serve qwen --port 8000")]
        with Standin("llama-swap", llama, models=models) as swap:
            (model,) = (await facts_of(swap.base_url)).models
        # Its own /props is asked: here a llama-server answers after all.
        assert (model.slots, model.sources["slots"]) == (4, "the model's /props")


class TestProxies:
    async def test_olla(self, llama: LlamaProcess) -> None:
        with Standin("olla", llama) as olla:
            facts = await facts_of(olla.base_url)
        assert (facts.state, facts.kind, facts.slots) == (State.READY, Kind.OLLA, None)
        assert any("response_header_timeout" in sentence for sentence in facts.advice)
        assert facts.models[0].actions == ["warm"]

    async def test_olla_without_its_path(self, llama: LlamaProcess) -> None:
        with Standin("olla", llama) as olla:
            facts = await facts_of(f"{olla.root_url}/v1")
        assert facts.state == State.UNREACHABLE
        assert facts.error == f"This is Olla. Use its full address: {olla.root_url}/olla/proxy/v1"

    async def test_litellm(self, llama: LlamaProcess) -> None:
        info = {"mode": "embedding", "max_input_tokens": 512, "supports_vision": False}
        models = [Model("m"), Model("e", info=info)]
        with Standin("litellm", llama, models=models, api_key="sk-x") as litellm:
            facts = await facts_of(litellm.base_url, "sk-x")
            assert (await facts_of(litellm.base_url, "bad")).state == State.UNAUTHORIZED
            # Its /health would send a request to every model.
            assert "/health" not in litellm.paths
            assert litellm.loads == []
        assert (facts.state, facts.kind, facts.slots) == (State.READY, Kind.LITELLM, None)
        assert any("DISABLE_AIOHTTP_TRANSPORT" in sentence for sentence in facts.advice)
        chat, embed = facts.models
        assert (chat.state, chat.embeddings) == ("unknown", None)
        assert (embed.embeddings, embed.context, embed.vision) == (True, 512, False)
        assert embed.sources["context"] == "LiteLLM's /v1/model/info"
