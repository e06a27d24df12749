"""A server's address and key: who may set them, and where they never appear."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser
from pytest_django import Settings

from apps.core.models import ApiKey
from apps.llm import errors
from apps.llm.client import ChatRequest, Client
from apps.llm.endpoint import Endpoint
from apps.servers.models import Server, State
from apps.servers.probing.discovery import probe
from apps.servers.probing.refresh import refresh_server
from tests.llama_process import LlamaProcess
from tests.standins import Model, Standin

SECRET = "a-key-nobody-may-see"


class Answers:
    """Gives every request the same raw answer, and notes what came."""

    def __init__(self, status: str, body: str = "", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close"]
        self.answer = "\r\n".join([*lines, *headers, "", body]).encode()
        self.heads: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(self.answer)
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_no_redirect_is_followed(status: str) -> None:
    """It could carry the key, and our requests, to any other server."""
    inside = Answers("200 OK", json.dumps({"data": []}), "content-type: application/json")
    async with inside.listening() as target:
        outside = Answers(status, "", f"location: {target}/v1/models")
        async with outside.listening() as address:
            client = Client(Endpoint(f"{address}/v1", SECRET))
            facts = await probe(client)
            with pytest.raises(errors.LLMError):
                await client.complete(ChatRequest("m", [{"role": "user", "content": "x"}], 5))
            await client.aclose()
    assert facts.state == State.UNREACHABLE
    assert inside.heads == []


async def test_markup_in_an_answer_is_not_passed_on() -> None:
    page = "<html><body><script>alert(1)</script><img src=x onerror=alert(2)></body></html>"
    async with Answers("500 Oops", page, "content-type: text/html").listening() as address:
        client = Client(Endpoint(f"{address}/v1"))
        facts = await probe(client)
        await client.aclose()
    assert facts.error == "Model server error: an HTML page"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("loop_closed")
async def test_the_key_is_in_no_log_no_error_and_no_fact(
    llama: LlamaProcess, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("", "openai", "httpx2", "httpcore2", "apps"):
        caplog.set_level(logging.INFO, logger=name)
    models = [Model("m", loaded=True)]
    for kind in ("router", "llama-swap", "litellm", "olla"):
        with Standin(kind, llama, models=models, api_key="another") as standin:
            server = Server(name=f"{kind} {SECRET[:5]}", base_url=standin.base_url)
            server.set_key(SECRET)
            await server.asave()
            await refresh_server(server)
            told = [server.stored_facts, str(server), repr(server), repr(server.endpoint)]
            assert SECRET not in json.dumps(told)
            assert SECRET not in server.encrypted_key
            client = Client(server.endpoint)
            question = ChatRequest("nope", [{"role": "user", "content": "x" * 9000}], 5)
            with pytest.raises(errors.LLMError) as caught:
                await client.complete(question)
            await client.aclose()
            assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text
    printed = capfd.readouterr()
    assert SECRET not in printed.out + printed.err


@pytest.mark.django_db(transaction=True)
def test_no_page_and_no_route_shows_a_key(carol: User, alice: User) -> None:
    server = Server(name="s", base_url="http://127.0.0.1:1/v1")
    server.set_key(SECRET)
    server.save()
    for user in (carol, alice):
        browser = Browser()
        browser.force_login(user)
        _, token = ApiKey.issue(user=user, name="tests")
        api = Browser(headers={"authorization": f"Bearer {token}"})
        for answer in (
            browser.get("/servers/"),
            api.get("/api/v1/servers"),
            api.get(f"/api/v1/servers/{server.pk}"),
        ):
            assert answer.status_code == 200
            assert SECRET not in answer.content.decode()
            assert server.encrypted_key not in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_key_that_cannot_be_read_any_more_is_no_error(
    browser: Browser, server: Server, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """A database was restored without the folder's secrets: pages open, the server says no."""
    settings.SECRET_KEY = "another"
    assert server.endpoint.api_key == ""
    assert "SECRET_KEY has changed" in caplog.text
    browser.force_login(User.objects.get(username="alice"))  # sessions end with the key too
    assert browser.get("/servers/").status_code == 200
