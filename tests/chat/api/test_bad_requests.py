"""What programs send wrong: a sentence with 404, 413 or 422, and nothing is changed."""

import io
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.chat.attachments import receive
from apps.chat.conversations import services
from apps.chat.models import Attachment, Conversation, Message
from apps.core.models import ApiKey
from tests.chat.conftest import told

pytestmark = pytest.mark.django_db
JSON = "application/json"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.fixture
def api(alice: User) -> Client:
    _, token = ApiKey.issue(user=alice, name="tests")
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"json_schema": "x"},
        {"type": "json_schema", "json_schema": "x"},
        {"type": "json_schema", "json_schema": {"name": "a"}},
        {"type": "json_schema", "json_schema": {"schema": {"type": "string"}}},
        {"type": "json_schema", "json_schema": {"schema": SCHEMA | {"$ref": "#"}}},
        {"type": "grammar", "grammar": "root ::= root"},
    ],
)
def test_formats_of_another_shape(alice: User, api: Client, wrong: dict[str, Any]) -> None:
    conversation = told(alice, "q", "a")
    url = f"/api/v1/conversations/{conversation.pk}"
    given = {"response_format": wrong}
    for answer in (
        api.post("/api/v1/conversations", given, content_type=JSON),
        api.patch(url, given, content_type=JSON),
        api.post(f"{url}/messages", given | {"content": "x"}, content_type=JSON),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_response_format")
    assert Conversation.objects.count() == 1
    assert Message.objects.count() == 2


@pytest.mark.parametrize(
    "right",
    [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
    ],
)
def test_formats_that_are_taken(api: Client, client: Client, alice: User, right: Any) -> None:
    made = api.post("/api/v1/conversations", {"response_format": right}, content_type=JSON)
    assert made.status_code == 201
    assert made.json()["response_format"] == ({} if right == {"type": "text"} else right)


def test_the_panel_of_a_format_that_an_older_version_took(alice: User, client: Client) -> None:
    conversation = told(alice, "q", "a")
    Conversation.objects.update(response_format={"json_schema": "x"})
    client.force_login(alice)
    assert client.get(reverse("chat:settings", args=[conversation.pk])).status_code == 200


def test_a_change_writes_its_own_fields_alone(
    alice: User, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = told(alice, "q", "a")
    newer = conversation.messages.create(role="user", content="asked meanwhile")
    save = Conversation.save

    def late(self: Conversation, *args: Any, **kwargs: Any) -> None:
        Conversation.objects.filter(pk=self.pk).update(active_leaf=newer, title="Written meanwhile")
        save(self, *args, **kwargs)

    monkeypatch.setattr(Conversation, "save", late)
    url = f"/api/v1/conversations/{conversation.pk}"
    assert api.patch(url, {"pinned": True}, content_type=JSON).status_code == 200
    conversation.refresh_from_db()
    assert (conversation.pinned, conversation.title) == (True, "Written meanwhile")
    assert conversation.active_leaf_id == newer.pk


def test_a_question_has_an_end(alice: User, api: Client, client: Client) -> None:
    conversation = told(alice, "q", "a")
    long = "x" * (services.MAX_CHARACTERS + 1)
    url = f"/api/v1/conversations/{conversation.pk}/messages"
    answer = api.post(url, {"content": long}, content_type=JSON)
    assert (answer.status_code, answer.json()["code"]) == (422, "message_too_long")
    assert "400,001 characters. The limit is 400,000." in answer.json()["detail"]
    client.force_login(alice)
    page = client.post(reverse("chat:send_message", args=[conversation.pk]), {"content": long})
    assert page.status_code == 422
    question = conversation.messages.first()
    assert question is not None
    edited = client.post(reverse("chat:edit", args=[question.pk]), {"content": long})
    assert edited.status_code == 422
    assert Message.objects.count() == 2


def upload(owner: User, name: str = "a.txt", text: bytes = b"text") -> Attachment:
    return receive.receive(owner, name, io.BytesIO(text), None)


def test_files_that_are_not_there(alice: User, bob: User, api: Client) -> None:
    conversation = told(alice, "q", "a")
    mine, his = upload(alice), upload(bob)
    url = f"/api/v1/conversations/{conversation.pk}/messages"
    for ids in ([his.pk], [mine.pk, his.pk], [mine.pk, 10**9], [10**15]):
        answer = api.post(url, {"content": "x", "attachments": ids}, content_type=JSON)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_attachment")
        assert "is not there" in answer.json()["detail"]
    assert Message.objects.count() == 2
    assert set(Attachment.objects.values_list("message", flat=True)) == {None}


def test_files_of_one_person_have_an_end(
    alice: User, bob: User, api: Client, client: Client, settings: Any
) -> None:
    settings.ATTACHMENTS_MB = 0
    file = SimpleUploadedFile("a.txt", b"text")
    answer = api.post("/api/v1/attachments", {"file": file})
    assert (answer.status_code, answer.json()["code"]) == (413, "no_room")
    assert "the limit is 0 MB" in answer.json()["detail"]
    client.force_login(alice)
    page = client.post(reverse("chat:attach"), {"file": SimpleUploadedFile("a.txt", b"text")})
    assert page.status_code == 413
    assert not Attachment.objects.exists()


def test_unsent_files_have_an_end_of_their_own(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "UNSENT_MB", 1)
    upload(alice, text=b"x" * 300_000)
    Attachment.objects.update(size=receive.MB)
    with pytest.raises(receive.NoRoom, match="unsent files have 1 MB already"):
        upload(alice)
    upload(bob)
    question = told(alice, "q").messages.get()
    receive.attach(alice.pk, [str(Attachment.objects.earliest("pk").pk)], question)
    upload(alice)
