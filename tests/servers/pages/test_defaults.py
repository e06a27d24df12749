"""POST /servers/defaults/: which server and model does what."""

import html
from pathlib import Path

import gguf
import pytest
from django.test import Client

from apps.servers.models import DefaultServer, Server, Use
from tests.conftest import create_server
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import write_tiny_gguf

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


def test_a_fallback_is_set_shown_and_cleared(
    staff_browser: Client, browser: Client, server: Server, other: Server
) -> None:
    data = {"chat-fallback": f"{other.pk}:small"}
    page = staff_browser.post("/servers/defaults/", data, follow=True).content.decode()
    assert "Chat, fallback: Other, small." in page
    chat = DefaultServer.objects.get(use=Use.CHAT)
    assert (chat.fallback, chat.fallback_model) == (other, "small")
    assert "Fallback: Other: small" in browser.get("/servers/").content.decode()
    staff_browser.post("/servers/defaults/", {"chat": f"{server.pk}"})  # a form without it
    assert DefaultServer.objects.get(use=Use.CHAT).fallback == other
    staff_browser.post("/servers/defaults/", {"chat-fallback": ""})
    assert DefaultServer.objects.get(use=Use.CHAT).fallback is None


def test_a_fallback_that_becomes_the_default_is_none(
    staff_browser: Client, server: Server, other: Server
) -> None:
    staff_browser.post("/servers/defaults/", {"chat-fallback": f"{other.pk}"})
    staff_browser.post("/servers/defaults/", {"chat": f"{other.pk}"})
    chat = DefaultServer.objects.get(use=Use.CHAT)
    assert (chat.server, chat.fallback) == (other, None)


def test_the_default_is_refused_as_its_fallback(staff_browser: Client, server: Server) -> None:
    answer = staff_browser.post("/servers/defaults/", {"chat-fallback": f"{server.pk}"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert 'id="default-chat-fallback-error"' in page
    assert "The fallback has to be another server than the default, “Chat”." in page


def test_a_fallback_for_embeddings_has_the_same_model(
    staff_browser: Client,
    embedding_server: Server,
    llama_embeddings: LlamaProcess,
    tmp_path: Path,
) -> None:
    def choose(process: LlamaProcess, name: str) -> str:
        found = create_server(process, name)
        data = {"embeddings-fallback": f"{found.pk}"}
        answer = staff_browser.post("/servers/defaults/", data, follow=True)
        return html.unescape(answer.content.decode())

    model = Path(llama_embeddings.command[llama_embeddings.command.index("--model") + 1])
    odd = tmp_path / "odd.gguf"
    write_tiny_gguf(odd, embeddings=True, pooling=gguf.PoolingType.CLS)
    with LlamaProcess(odd, embeddings=True) as process:
        shown = choose(process, "Odd")
        assert "“Odd” serves another embedding model than “Embeddings”" in shown
        assert DefaultServer.objects.get(use=Use.EMBEDDINGS).fallback is None
    assert "Both servers have to answer once" in choose(process, "Gone")
    with LlamaProcess(model, embeddings=True) as process:
        assert "Embeddings, fallback: Twin" in choose(process, "Twin")


def test_only_staff(browser: Client, server: Server, other: Server) -> None:
    for field in ("chat", "chat-fallback"):
        assert browser.post("/servers/defaults/", {field: f"{other.pk}"}).status_code == 403
    assert DefaultServer.objects.get(use=Use.CHAT).server == server


def test_defaults_refuse_get(staff_browser: Client) -> None:
    assert staff_browser.get("/servers/defaults/").status_code == 405
