"""The model that a request gets where nothing was chosen, and the slots it may use."""

import pytest
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks, Settings

from apps.servers import targets
from apps.servers.errors import NoServer
from apps.servers.facts.server_facts import ModelFacts
from apps.servers.models import DefaultServer, Kind, Server, Use
from apps.servers.slots.hold_slot import slot_terms
from apps.servers.targets import (
    choose_target,
    default_target,
    is_embedding_model,
    known_default,
    set_default,
)


def swapping(**fields: object) -> Server:
    models = [
        {"id": "far", "state": "unknown", "slots": 8, "context": 8192},
        {"id": "big", "aliases": ["large"], "state": "loaded", "slots": 2, "context": 4096},
        {"id": "small", "state": "unloaded", "slots": 8},
    ]
    facts = {"models": models, "at_once": 1}
    return Server(pk=3, name="s", kind=Kind.ROUTER, stored_facts=facts, **fields)


@pytest.mark.parametrize(
    ("name", "embeds"),
    [
        ("nomic-embed-text", True),
        ("BAAI/bge-m3", True),
        ("intfloat/e5-large", True),
        ("all-minilm:latest", True),
        ("qwen3-8b", False),
        ("gemma-e5x", False),
    ],
)
def test_is_embedding_model_by_its_name(name: str, embeds: bool) -> None:
    assert is_embedding_model(ModelFacts(name)) is embeds
    assert is_embedding_model(ModelFacts(name, embeddings=not embeds)) is not embeds


def test_the_first_model_that_suits_the_use() -> None:
    models = [{"id": "bge-m3"}, {"id": "qwen"}]
    server = Server(name="s", stored_facts={"models": models})
    assert choose_target(server).model == "qwen"
    assert choose_target(server, use=Use.EMBEDDINGS).model == "bge-m3"
    assert choose_target(server, "other").model == "other"
    assert choose_target(Server(name="s")).model == "default"


def test_a_target_knows_if_its_model_must_be_loaded() -> None:
    server = swapping()
    assert choose_target(server, "large").is_loaded
    assert not choose_target(server, "small").is_loaded
    assert choose_target(Server(name="s"), "any").is_loaded
    assert choose_target(server, "small").must_be_loaded
    assert not choose_target(server, "large").must_be_loaded


def test_nobody_waits_for_a_load_of_which_nothing_is_known() -> None:
    """The models of llama-swap's peers, and all of an old llama-swap."""
    target = choose_target(swapping(), "far")
    assert not target.is_loaded
    assert not target.must_be_loaded


def test_the_demo_model_is_that_of_the_settings() -> None:
    assert choose_target(Server(name="s", from_settings=True), "workbench-demo").is_demo
    assert not choose_target(Server(name="s"), "workbench-demo").is_demo


@pytest.mark.parametrize(
    ("device", "chosen", "is_demo"),
    [("CPU", "", True), ("CPU", "own.gguf", False), ("", "", False)],
)
def test_the_demo_model_is_known_before_its_server_was_asked(
    settings: Settings, device: str, chosen: str, is_demo: bool
) -> None:
    settings.CHAT_DEVICE, settings.CHAT_MODEL = device, chosen
    settings.LLM_BASE_URL = "http://127.0.0.1:1/v1"
    server = Server(name="s", from_settings=True, base_url=settings.LLM_BASE_URL)
    assert choose_target(server).is_demo == is_demo
    server.base_url = "http://127.0.0.1:2/v1"  # the embedding server is of the settings too
    assert not choose_target(server, use=Use.EMBEDDINGS).is_demo


def test_slot_terms_of_a_server_that_swaps() -> None:
    terms = slot_terms(swapping(), "large")
    assert (terms.scope, terms.slots, terms.is_loaded) == ("big", 2, True)
    assert (terms.loaded_models, terms.models_at_once) == (("big",), 1)
    assert terms.is_listed
    assert not slot_terms(swapping(), "unknown").is_listed


def test_slot_terms_of_a_single_server() -> None:
    terms = slot_terms(Server(pk=1, name="s", parallel=3), "any")
    assert (terms.scope, terms.slots, terms.swaps) == ("", 3, False)
    assert terms.loaded_models == ()
    assert terms.is_listed  # a server without a list may have any model


def test_set_default_replaces_the_one_before(db: None) -> None:
    first = Server.objects.create(name="a", base_url="http://127.0.0.1:1/v1")
    second = Server.objects.create(name="b", base_url="http://127.0.0.1:2/v1")
    set_default(first, Use.CHAT, "m")
    set_default(second, Use.CHAT)
    assert DefaultServer.objects.get().server == second
    assert default_target(Use.CHAT).server == second


def test_without_a_default_the_error_says_where_to_set_one(db: None) -> None:
    with pytest.raises(NoServer, match="Choose one under Servers"):
        default_target(Use.GENERATION)


@pytest.mark.django_db
def test_a_known_default_asks_no_database_and_follows_what_this_process_changes(
    django_assert_num_queries: DjangoAssertNumQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "KNOWN_SECONDS", 60)
    with pytest.raises(NoServer):
        known_default(Use.CHAT)
    first = Server.objects.create(name="first", base_url="http://127.0.0.1:1/v1")
    set_default(first, Use.CHAT, "small")
    assert known_default(Use.CHAT).model == "small"
    with django_assert_num_queries(0):
        again = known_default(Use.CHAT)
    again.server.name = "changed by one request alone"
    assert known_default(Use.CHAT).server.name == "first"
    Server.objects.filter(pk=first.pk).update(name="renamed")
    assert known_default(Use.CHAT).server.name == "renamed"
    set_default(first, Use.CHAT, "big")
    assert known_default(Use.CHAT).model == "big"
    first.delete()
    with pytest.raises(NoServer):
        known_default(Use.CHAT)


@pytest.mark.django_db
def test_a_default_that_is_read_before_a_change_is_committed_is_not_kept(
    django_assert_num_queries: DjangoAssertNumQueries,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(targets, "KNOWN_SECONDS", 60)
    first = Server.objects.create(name="first", base_url="http://127.0.0.1:1/v1")
    with django_capture_on_commit_callbacks(execute=True):
        set_default(first, Use.CHAT, "small")
        known_default(Use.CHAT)  # as another thread would, which sees no change yet
    with django_assert_num_queries(1):
        known_default(Use.CHAT)


@pytest.mark.django_db
def test_a_known_default_is_read_again_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "KNOWN_SECONDS", 0)
    first = Server.objects.create(name="first", base_url="http://127.0.0.1:1/v1")
    set_default(first, Use.CHAT, "small")
    assert known_default(Use.CHAT).model == "small"
    DefaultServer.objects.update(model="of another process")
    assert known_default(Use.CHAT).model == "of another process"
