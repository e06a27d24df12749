import pytest
from django.core.management import call_command
from pytest_django import Settings

from apps.servers.models import DefaultServer, Server, Use
from apps.servers.services import NoServer, default_target

pytestmark = pytest.mark.django_db


def configure(settings: Settings, llm: str, embed: str = "") -> None:
    settings.LLM_BASE_URL, settings.LLM_API_KEY = llm, "secret"
    settings.EMBED_BASE_URL, settings.EMBED_API_KEY = embed, ""
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
