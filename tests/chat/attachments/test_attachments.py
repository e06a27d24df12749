"""Files of questions: told apart by their bytes, kept for their owner, sent with the prompt."""

import stat
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from apps.chat.attachments import receive
from apps.chat.attachments.file_text import MAX_CHARACTERS, BadAttachment
from apps.chat.composer.drafts import draft_of
from apps.chat.conversations import branches, services
from apps.chat.models import Attachment, Conversation, Message, Role
from apps.chat.prompt import build
from apps.chat.prompt.prepare import prepare
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State
from tests.chat.conftest import events_of, told

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360"
    "606060000000050001a5f645400000000049454e44ae426082"
)


def pdf(text: str) -> bytes:
    """The smallest PDF that says something."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj" % number + body + b"endobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + table
    return out + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % start


def file(name: str, data: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def upload(owner: User, name: str, data: bytes) -> Attachment:
    return receive.receive(owner, name, file(name, data), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "data", "kind", "text"),
    [
        ("a.txt", "Grüße\r\nzwei".encode(), "text", "Grüße\nzwei"),
        ("a.png", b"not a picture", "text", "not a picture"),  # the bytes decide
        ("a.txt", "\ufeffmark".encode(), "text", "mark"),
        ("a.txt", "wide".encode("utf-16"), "text", "wide"),
        ("a.html", b"<script>alert(1)</script>", "text", "<script>alert(1)</script>"),
        ("a.pdf", pdf("Kettles boil"), "pdf", "Kettles boil"),
        ("a.txt", PNG, "image", ""),
    ],
)
def test_receive_stores_kind_and_text_of_each_file(
    alice: User, name: str, data: bytes, kind: str, text: str
) -> None:
    made = upload(alice, name, data)
    assert (made.kind, made.text, made.size) == (kind, text, len(data))
    assert made.path.read_bytes() == data
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert name not in str(made.path)
    assert bool(made.tokens) == bool(text)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02", "is not a supported file"),
        (b"\xff\xfd latin", "is not a supported file"),
        (b"%PDF-1.4 broken", "could not be read. The PDF"),
        (pdf(""), "has no text"),
        (b"x" * (MAX_CHARACTERS + 1), "The limit is 400,000"),
        (b"x" * (receive.MAX_BYTES + 1), "larger than 20 MB"),
    ],
)
def test_receive_refuses_an_unreadable_file_and_keeps_nothing(
    alice: User, data: bytes, sentence: str
) -> None:
    receive.delete_stale(timezone.now() + timedelta(days=1))
    with pytest.raises(BadAttachment, match=sentence):
        upload(alice, "a", data)
    assert not Attachment.objects.exists()
    assert receive.delete_stale(timezone.now() + timedelta(days=1)) == 0  # no file is left behind


def test_in_the_composer(browser: Client, bobs_browser: Client, demo_server: Server) -> None:
    address = reverse("chat:attach")
    made = browser.post(address, {"file": file("<b>.txt", b"Hello")})
    html = made.content.decode()
    found = Attachment.objects.get()
    assert f'value="{found.pk}"' in html
    assert "&lt;b&gt;.txt" in html
    refused = browser.post(address, {"file": file("x", b"\x00")})
    assert refused.status_code == 422
    assert "is not a supported file" in refused.content.decode()
    assert browser.post(address).status_code == 422
    asked = {"id": [found.pk, "x"], "conversation": ""}
    assert f'value="{found.pk}"' in browser.get(address, asked).content.decode()  # after a reload
    assert f'value="{found.pk}"' not in bobs_browser.get(address, asked).content.decode()
    assert browser.put(address).status_code == 405
    detach = reverse("chat:detach", args=[found.pk])
    assert bobs_browser.post(detach).status_code == 404
    assert browser.post(detach).status_code == 200
    assert not found.path.exists()


def test_attachment_is_shown_to_its_owner_as_an_inert_file(
    alice: User, browser: Client, bobs_browser: Client
) -> None:
    picture, page = upload(alice, "a.png", PNG), upload(alice, "a.html", b"<script>1</script>")
    shown = browser.get(reverse("chat:attachment", args=[picture.pk]))
    assert (shown["Content-Type"], shown["X-Content-Type-Options"]) == ("image/png", "nosniff")
    assert b"".join(shown.streaming_content) == PNG
    kept = browser.get(reverse("chat:attachment", args=[page.pk]))
    assert kept["Content-Type"] == "application/octet-stream"
    assert kept["Content-Disposition"].startswith("attachment")
    assert "sandbox" in kept["Content-Security-Policy"]
    assert b"".join(kept.streaming_content) == b"<script>1</script>"
    for one in (picture, page):
        assert bobs_browser.get(reverse("chat:attachment", args=[one.pk])).status_code == 404


def test_a_file_that_is_gone_is_not_found(browser: Client, alice: User) -> None:
    """A data folder may be restored without its files."""
    found = upload(alice, "notes.txt", b"Some notes.")
    found.path.unlink()
    answer = browser.get(f"/chat/attachments/{found.pk}/")
    assert answer.status_code == 404


def test_no_token_for_a_picture_on_a_blind_model(browser: Client, demo_server: Server) -> None:
    demo_server.stored_facts["models"][0]["vision"] = False
    demo_server.save()
    html = browser.post(reverse("chat:attach"), {"file": file("a.png", PNG)}).content.decode()
    assert "does not support images" in html


def test_a_picture_is_judged_by_the_model_of_the_next_chat(
    alice: User, bobs_browser: Client, browser: Client, demo_server: Server
) -> None:
    facts = {"models": [{"id": "blind", "vision": False}]}
    other = Server.objects.create(
        name="Other", base_url="http://127.0.0.1:8/v1", state=State.READY, stored_facts=facts,
        checked_at=timezone.now(),
    )  # fmt: skip
    draft = draft_of(alice)
    address, picture = reverse("chat:attach"), upload(alice, "a.png", PNG)
    asked = {"id": picture.pk, "conversation": draft.pk}
    assert "does not support images" not in browser.get(address, asked).content.decode()
    draft.server, draft.model = other, "blind"
    draft.save()
    assert "does not support images" in browser.get(address, asked).content.decode()
    sent = browser.post(address, {"file": file("b.png", PNG), "conversation": draft.pk})
    assert "does not support images" in sent.content.decode()
    assert bobs_browser.get(address, asked).status_code == 404


def test_text_of_a_file_goes_back_into_the_message(
    alice: User, browser: Client, bobs_browser: Client
) -> None:
    found = upload(alice, "Pasted text.txt", "Naïve\ntext.".encode())
    address = reverse("chat:attachment_text", args=[found.pk])
    assert browser.get(address).content.decode() == "Naïve\ntext."
    assert bobs_browser.get(address).status_code == 404
    waiting = browser.get(reverse("chat:attach"), {"id": found.pk}).content.decode()
    assert f'data-as-text="{address}"' in waiting


def with_files(owner: User, *files: Attachment) -> Message:
    conversation = told(owner, "What is in it?", "")
    question = conversation.messages.first()
    assert question is not None
    receive.attach(owner.pk, [str(one.pk) for one in files], question)
    return question


def test_prompt_holds_the_text_and_images_of_attachments(alice: User, server: Server) -> None:
    notes, picture = upload(alice, 'my "notes".txt', b"Kettles"), upload(alice, "a", PNG)
    question = with_files(alice, notes, picture)
    answer = question.children.get()
    prepared = prepare(build.for_answer(answer.pk), server)
    (message,) = prepared.request.messages
    first, second, third = message["content"]  # type: ignore[misc]
    assert first["text"] == "<file name=\"my 'notes'.txt\">\nKettles\n</file>\n\n"  # type: ignore[index]
    assert second["image_url"]["url"].startswith("data:image/png;base64,iVBOR")  # type: ignore[index]
    assert third["text"] == "What is in it?"  # type: ignore[index]


def test_an_edited_question_keeps_its_files(alice: User) -> None:
    question = with_files(alice, upload(alice, "a.txt", b"Kettles"))
    copy = question.conversation.messages.create(role=Role.USER, content="And now?")
    receive.copy(question, copy)
    (one,), (two,) = question.attachments.all(), copy.attachments.all()
    assert one.stored_as != two.stored_as
    receive.delete(one)
    assert two.path.read_bytes() == b"Kettles"


def test_nobody_takes_anothers_file(alice: User, bob: User) -> None:
    his = upload(bob, "a.txt", b"Secret")
    with pytest.raises(BadAttachment, match="is not there"):
        with_files(alice, his)
    taken = with_files(bob, his)
    assert list(taken.attachments.all()) == [his]
    with pytest.raises(BadAttachment, match="it was sent before"):
        with_files(bob, his)


def test_delete_stale_removes_attachments_that_were_never_sent(alice: User) -> None:
    sent, unsent = upload(alice, "a", b"x"), upload(alice, "b", b"y")
    with_files(alice, sent)
    later = timezone.now() + timedelta(days=2)
    receive.delete_stale(later)
    assert (sent.path.exists(), unsent.path.exists()) == (True, False)
    Conversation.objects.all().delete()
    assert receive.delete_stale(later) == 1
    assert not sent.path.exists()


@pytest.mark.django_db(transaction=True)
async def test_through_the_model(
    alice: User, alice_api: AsyncClient, alice_browser: AsyncClient, server: Server
) -> None:
    plain = await in_db(services.open_conversation, owner=alice)
    made = await alice_api.post("/api/v1/attachments", {"file": file("a.txt", b"Kettles " * 40)})
    assert made.status_code == 201, made.content
    assert made.json()["tokens"] > 300  # the tiny model has a token a byte, as its server counts
    asked = await alice_browser.post(
        reverse("chat:send_message", args=[plain.pk]),
        {"content": "Hm?", "attachment": made.json()["id"]},
    )
    assert "a.txt" in asked.content.decode()
    answer = await Message.objects.answers().aget()
    events = await events_of(alice_api, answer.pk)
    assert next(event for event in events if event.name == "usage")["prompt_tokens"] > 300
    edited, _ = await in_db(branches.edit, await Message.objects.aget(role=Role.USER), "Oh?")
    assert await edited.attachments.acount() == 1


def test_no_picture_for_a_model_that_sees_none(
    alice: User, browser: Client, api: Client, demo_server: Server
) -> None:
    demo_server.stored_facts["models"][0]["vision"] = False
    demo_server.save()
    conversation = told(alice, "Hello", "Hi")
    picture = upload(alice, "cat.png", PNG)
    sent = {"content": "Which cat?", "attachment": picture.pk}
    refused = browser.post(reverse("chat:send_message", args=[conversation.pk]), sent)
    assert refused.status_code == 422
    assert "workbench-demo does not support images. Remove “cat.png”" in refused.content.decode()
    begun = browser.post(reverse("chat:create"), sent, follow=True).content.decode()
    assert "does not support images" in begun
    assert (
        f'value="{picture.pk}"'
        in browser.get(reverse("chat:attach"), {"id": picture.pk}).content.decode()
    )  # it waits with the draft
    assert (Conversation.objects.count(), conversation.messages.count()) == (1, 2)
    over_http = api.post(
        f"/api/v1/conversations/{conversation.pk}/messages",
        {"content": "Which cat?", "attachments": [picture.pk]}, content_type="application/json",
    )  # fmt: skip
    assert (over_http.status_code, over_http.json()["code"]) == (422, "bad_attachment")
