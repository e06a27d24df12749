"""What a picture costs is said before it is sent, as its server counts it, or that nobody knows."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse

from apps.chat.attachments import image_tokens, receive
from apps.chat.models import Message
from apps.chat.prompt.context import build_prompt
from apps.chat.prompt.messages import PromptMessage
from apps.servers import services as llm
from apps.servers.models import Server, Use
from tests.chat.attachments.test_attachments import PNG, file, upload
from tests.chat.conftest import events_of, told
from tests.conftest import create_server
from tests.environment import FOLDER
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import PICTURE_TOKENS, write_tiny_projector


def png(width: int, height: int) -> bytes:
    """A black picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(3 * width)) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def seeing(tiny_model: Path) -> Iterator[LlamaProcess]:
    """A real llama-server whose model sees."""
    eyes = write_tiny_projector(FOLDER / "tiny-eyes.gguf")
    with LlamaProcess(tiny_model, "--mmproj", str(eyes)) as process:
        yield process


@pytest.fixture
def seeing_server(db: None, seeing: LlamaProcess) -> Server:
    return create_server(seeing, "Seeing", Use.CHAT)


def chip(browser: Client, data: bytes) -> str:
    return browser.post(reverse("chat:attach"), {"file": file("a.png", data)}).content.decode()


@pytest.mark.django_db(transaction=True)
async def test_image_costs_as_many_tokens_as_its_upload_reported(
    alice_api: AsyncClient, seeing_server: Server
) -> None:
    sizes = []
    conversation = (
        await alice_api.post("/api/v1/conversations", {}, content_type="application/json")
    ).json()["id"]
    for files in ([], ["a.png"]):
        ids = []
        for name in files:
            made = await alice_api.post("/api/v1/attachments", {"file": file(name, png(80, 40))})
            assert made.json()["tokens"] == PICTURE_TOKENS
            ids.append(made.json()["id"])
        asked = await alice_api.post(
            f"/api/v1/conversations/{conversation}/messages",
            {"content": "Which cat?", "attachments": ids, "params": {"max_tokens": 1}},
            content_type="application/json",
        )
        events = await events_of(alice_api, asked.json()["answer"]["id"])
        sizes.append(next(event for event in events if event.name == "usage"))
    first, second = sizes
    words = len("<user>Which cat?\n<assistant>?\n") + 1
    before = first["prompt_tokens"] + first["completion_tokens"]
    assert PICTURE_TOKENS <= second["prompt_tokens"] - before <= PICTURE_TOKENS + words


@pytest.mark.django_db(transaction=True)
def test_in_the_composer(browser: Client, seeing_server: Server) -> None:
    assert f"{PICTURE_TOKENS} tokens" in chip(browser, png(300, 200))
    assert "tokens unknown" in chip(browser, PNG[:40])  # its size cannot be read


def test_no_server_counts_it(alice: User, browser: Client, demo_server: Server) -> None:
    picture = upload(alice, "a.png", PNG)
    assert "tokens unknown until this model’s first image" in chip(browser, PNG)
    conversation = told(
        alice, "Which cat?", "A black one.", model="workbench-demo", prompt_tokens=620
    )
    question = Message.objects.get(conversation=conversation, parent=None)
    receive.attach(alice.pk, [str(picture.pk)], question)
    conversation.server = demo_server
    conversation.model = "workbench-demo"
    conversation.save()
    shown = browser.post(
        reverse("chat:attach"),
        {"file": file("b.png", PNG), "conversation": conversation.pk},
    ).content.decode()
    assert "tokens unknown until sent; this model’s last image took about 600" in shown


def test_what_the_last_one_took(alice: User, bob: User) -> None:
    def answered(owner: User, size: int, words: str = "Hm?", *names: str) -> Message:
        question = told(owner, words, "Yes.", model="eyes", prompt_tokens=size).messages.get(
            parent=None
        )
        files = [upload(owner, name, PNG if name.endswith("png") else b"text") for name in names]
        receive.attach(owner.pk, [str(one.pk) for one in files], question)
        return question.children.get()

    answered(alice, 900)
    answered(bob, 900, "Hm?", "his.png")
    assert image_tokens.last_cost(alice, "eyes") is None
    answered(alice, 330, "Hm?", "a.png")
    answered(alice, 900, "Hm?", "a.png", "b.png")
    answered(alice, 900, "Hm?", "a.png", "b.txt")
    answered(alice, 900, "Hm? " * 900, "a.png")
    tooled = answered(alice, 900, "Hm?", "a.png")
    tooled.prompt_prefix = {"tools": "x"}
    tooled.save()
    assert image_tokens.last_cost(alice, "eyes") == 310
    assert image_tokens.last_cost(alice, "other") is None
    assert "no server" in image_tokens.describe_unknown(alice, None)


async def test_none_is_loaded_for_counting() -> None:
    swapped = Server(kind="router", stored_facts={"models": [{"id": "eyes", "state": "unloaded"}]})
    blind = Server(stored_facts={"models": [{"id": "eyes", "vision": False}]})
    for server in (swapped, blind):  # neither has an address that could be asked
        assert await image_tokens.count(["data:"], llm.Target(server, "eyes")) == [None]


def test_a_picture_has_its_room_in_the_prompt() -> None:
    plain, seen = (
        build_prompt(None, [PromptMessage(1, "user", "Hm?", image_tokens=tokens)], context=4096)
        for tokens in (0, 1000)
    )
    assert seen.tokens - plain.tokens == 1000
