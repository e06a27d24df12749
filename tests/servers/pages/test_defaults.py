"""POST /servers/defaults/: which server and model does what."""

import pytest
from django.test import Client

from apps.servers.models import DefaultServer, Server, Use

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def other() -> Server:
    return Server.objects.create(name="Other", base_url="http://127.0.0.1:1/v1")


def test_defaults_are_saved_and_reported(
    staff_browser: Client, server: Server, other: Server
) -> None:
    data = {"chat": f"{other.pk}:qwen-14b", "generation": f"{server.pk}"}
    answer = staff_browser.post("/servers/defaults/", data, follow=True)
    assert "Chat: Other, qwen-14b." in answer.content.decode()
    chat = DefaultServer.objects.get(use=Use.CHAT)
    assert (chat.server, chat.model) == (other, "qwen-14b")
    assert DefaultServer.objects.get(use=Use.GENERATION).server == server
    assert not DefaultServer.objects.filter(use=Use.EMBEDDINGS).exists()


def test_what_stays_is_not_announced(staff_browser: Client, server: Server) -> None:
    answer = staff_browser.post("/servers/defaults/", {"chat": f"{server.pk}"}, follow=True)
    assert "notice-good" not in answer.content.decode()


@pytest.mark.parametrize("value", ["999", "999:qwen", "x"])
def test_a_server_that_is_not_there(staff_browser: Client, server: Server, value: str) -> None:
    answer = staff_browser.post("/servers/defaults/", {"embeddings": value})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert 'id="default-embeddings-error"' in page
    assert 'aria-describedby="default-embeddings-error"' in page
    assert not DefaultServer.objects.filter(use=Use.EMBEDDINGS).exists()


def test_only_staff(browser: Client, server: Server, other: Server) -> None:
    assert browser.post("/servers/defaults/", {"chat": f"{other.pk}"}).status_code == 403
    assert DefaultServer.objects.get(use=Use.CHAT).server == server


def test_defaults_refuse_get(staff_browser: Client) -> None:
    assert staff_browser.get("/servers/defaults/").status_code == 405
