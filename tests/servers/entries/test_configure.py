import pytest
from django.core.management import call_command
from pytest_django import Settings

from apps.servers.models import DefaultServer, Server, Use
from apps.servers.services import NoServer, default_target

pytestmark = pytest.mark.django_db


def configure(settings: Settings, llm: str, embed: str = "", embed_key: str = "secret") -> None:
    settings.LLM_BASE_URL, settings.LLM_API_KEY = llm, "secret"
    settings.EMBED_BASE_URL, settings.EMBED_API_KEY = embed, embed_key
    call_command("configure_servers")


def test_servers_of_the_settings_become_the_defaults(settings: Settings) -> None:
    configure(settings, "http://127.0.0.1:1", "http://127.0.0.1:2/v1/")
    assert default_target(Use.CHAT).server.base_url == "http://127.0.0.1:1/v1"
    assert default_target(Use.GENERATION).server.name == "Chat server"
    assert default_target(Use.EMBEDDINGS).server.base_url == "http://127.0.0.1:2/v1"
    assert default_target(Use.CHAT).server.endpoint.api_key == "secret"


def test_a_second_start_moves_the_address_and_adds_nothing(settings: Settings) -> None:
    configure(settings, "http://127.0.0.1:1")
    configure(settings, "http://127.0.0.1:2")
    assert Server.objects.get().base_url == "http://127.0.0.1:2/v1"


def test_a_default_that_a_person_chose_stays(settings: Settings) -> None:
    mine = Server.objects.create(name="Mine", base_url="http://127.0.0.1:9/v1")
    DefaultServer.objects.create(use=Use.CHAT, server=mine)
    configure(settings, "http://127.0.0.1:1")
    assert default_target(Use.CHAT).server == mine
    assert default_target(Use.GENERATION).server != mine


def test_without_a_server_the_error_says_where_to_add_one() -> None:
    with pytest.raises(NoServer, match="Choose one under Servers"):
        default_target(Use.CHAT)


def names() -> set[str]:
    return set(Server.objects.values_list("name", flat=True))


@pytest.mark.parametrize(
    "embed",
    ["http://127.0.0.1:1", "http://127.0.0.1:1/v1/", "http://LocalHost:1", "localhost:1/v1"],
)
def test_one_address_and_key_is_one_server_for_all_uses(settings: Settings, embed: str) -> None:
    for _ in range(2):
        configure(settings, "http://127.0.0.1:1/v1", embed)
    server = Server.objects.get()
    assert server.name == "Chat server"
    assert {default_target(use).server for use in Use} == {server}


def test_another_key_or_path_is_another_server(settings: Settings) -> None:
    configure(settings, "http://127.0.0.1:1", "http://127.0.0.1:1", embed_key="other")
    assert names() == {"Chat server", "Embedding server"}
    Server.objects.all().delete()
    configure(settings, "http://127.0.0.1:1/a", "http://127.0.0.1:1/b")
    assert names() == {"Chat server", "Embedding server"}


def test_an_address_of_their_own_brings_embeddings_a_server_and_the_default(
    settings: Settings,
) -> None:
    configure(settings, "http://127.0.0.1:1", "http://127.0.0.1:1")
    configure(settings, "http://127.0.0.1:1", "http://127.0.0.1:2")
    assert default_target(Use.EMBEDDINGS).server.base_url == "http://127.0.0.1:2/v1"
    assert default_target(Use.CHAT).server.base_url == "http://127.0.0.1:1/v1"


def test_two_entries_of_an_earlier_version_stay_and_follow_the_settings(
    settings: Settings,
) -> None:
    configure(settings, "http://127.0.0.1:1", "http://127.0.0.1:2")
    before = {server.pk for server in Server.objects.all()}
    configure(settings, "http://127.0.0.1:3", "http://127.0.0.1:3")
    assert {server.pk for server in Server.objects.all()} == before
    assert {server.base_url for server in Server.objects.all()} == {"http://127.0.0.1:3/v1"}
    assert default_target(Use.EMBEDDINGS).server.name == "Embedding server"


def test_a_default_for_embeddings_that_a_person_chose_stays(settings: Settings) -> None:
    mine = Server.objects.create(name="Mine", base_url="http://127.0.0.1:9/v1")
    DefaultServer.objects.create(use=Use.EMBEDDINGS, server=mine)
    configure(settings, "http://127.0.0.1:1", "http://127.0.0.1:1")
    configure(settings, "http://127.0.0.1:1", "http://127.0.0.1:2")
    assert default_target(Use.EMBEDDINGS).server == mine


def test_an_entry_of_a_person_keeps_its_name(settings: Settings) -> None:
    mine = Server.objects.create(name="Chat server", base_url="http://127.0.0.1:9/v1")
    for _ in range(2):
        configure(settings, "http://127.0.0.1:1")
        named = Server.objects.get(from_settings=True)
        assert (named.name, named.base_url) == ("Chat server 2", "http://127.0.0.1:1/v1")
    mine.refresh_from_db()
    assert mine.base_url == "http://127.0.0.1:9/v1"
