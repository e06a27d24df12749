"""Projects and their documents over HTTP."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.chat.conversations import projects
from apps.chat.knowledge import documents
from apps.chat.knowledge.documents import KIND
from apps.chat.models import Document, Preset, Project
from apps.servers.models import Server
from apps.work import services as work

pytestmark = pytest.mark.django_db(transaction=True)

INVOICES = "# Archiving\n\nInvoices are kept for ten years.\n\n# Paper\n\nOriginals are scanned."
API = "/api/v1"


@pytest.fixture
def project(alice: User) -> Project:
    return projects.create(alice, "Invoices")


def upload(client: Client, project: Project, data: bytes = INVOICES.encode()) -> Any:
    file = SimpleUploadedFile("handbook.md", data)
    return client.post(f"{API}/projects/{project.pk}/documents", {"file": file})


def send(client: Client, verb: str, path: str, body: dict[str, Any]) -> Any:
    return getattr(client, verb)(f"{API}/{path}", body, content_type="application/json")


def test_a_project_is_created_changed_and_deleted(api: Client, alice: User, bob: User) -> None:
    preset = Preset.objects.create(owner=alice, name="Calm")
    made = send(api, "post", "projects", {"name": "Tea", "instructions": "Be warm."})
    assert made.status_code == 201
    project = made.json()
    assert (project["instructions"], project["documents"]) == ("Be warm.", 0)
    path = f"projects/{project['id']}"
    changed = send(api, "patch", path, {"preset": preset.pk}).json()
    assert (changed["preset"], changed["instructions"]) == (preset.pk, "Be warm.")
    assert send(api, "patch", path, {"preset": None}).json()["preset"] is None
    projects.create(bob, "His")
    assert [found["name"] for found in api.get(f"{API}/projects").json()["items"]] == ["Tea"]
    taken = send(api, "post", "projects", {"name": "Tea"})
    assert (taken.status_code, taken.json()["code"]) == (422, "bad_project")
    his = Preset.objects.create(owner=bob, name="His")
    assert send(api, "patch", path, {"preset": his.pk}).status_code == 404
    assert api.delete(f"{API}/{path}").status_code == 204
    assert api.get(f"{API}/{path}").status_code == 404


def test_a_conversation_starts_with_the_settings_of_its_project(
    api: Client, alice: User, bob: User
) -> None:
    preset = Preset.objects.create(owner=alice, name="Calm", params={"temperature": 0.1})
    body = {"name": "Tea", "instructions": "Be warm.", "preset": preset.pk}
    project = send(api, "post", "projects", body).json()
    made = send(api, "post", "conversations", {"project": project["id"]}).json()
    prompt = api.get(f"{API}/system-prompts").json()["items"][-1]
    assert (made["project"], made["params"]) == (project["id"], {"temperature": 0.1})
    assert (prompt["id"], prompt["text"]) == (made["system_prompt"], "Be warm.")
    body = {"project": project["id"], "preset": preset.pk}
    assert send(api, "post", "conversations", body).json()["system_prompt"] is None
    path = f"conversations/{made['id']}"
    assert send(api, "patch", path, {"project": None}).json()["project"] is None
    his = projects.create(bob, "His")
    assert send(api, "patch", path, {"project": his.pk}).status_code == 404
    assert send(api, "post", "conversations", {"project": his.pk}).status_code == 404


@pytest.mark.usefixtures("embedding_server")
def test_a_document_is_uploaded_read_and_deleted(api: Client, project: Project) -> None:
    added = upload(api, project)
    assert added.status_code == 202
    path = f"{API}/documents/{added.json()['id']}"
    early = api.get(f"{path}/passages")
    assert (early.status_code, early.json()["code"]) == (409, "not_read")
    work.run_subject(KIND, added.json()["id"])
    document = api.get(path).json()
    assert (document["state"], document["passages"], document["progress"]) == ("ready", 2, None)
    first = api.get(f"{path}/passages?limit=1").json()
    second = api.get(f"{path}/passages?limit=1&after={first['next']}").json()
    assert [found["items"][0]["heading"] for found in (first, second)] == ["Archiving", "Paper"]
    assert second["next"] is None
    whole = send(api, "patch", f"documents/{document['id']}", {"whole": True}).json()
    assert whole["whole"]
    [listed] = api.get(f"{API}/projects/{project.pk}/documents").json()["items"]
    assert listed == whole
    assert api.get(f"{API}/projects").json()["items"][0]["documents"] == 1
    assert api.delete(path).status_code == 204
    assert not Document.objects.exists()


def test_a_failed_document_says_why_and_is_retried(
    api: Client, project: Project, server: Server
) -> None:
    document = upload(api, project).json()["id"]
    work.run_subject(KIND, document)
    failed = api.get(f"{API}/documents/{document}").json()
    assert failed["state"] == "failed"
    assert "No embedding server" in failed["error"]
    retried = api.post(f"{API}/documents/{document}/retry")
    assert (retried.status_code, retried.json()["state"]) == (202, "waiting")


def test_limits_are_said(api: Client, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert upload(api, project, b"").json()["detail"] == "“handbook.md” is empty."
    monkeypatch.setattr(documents, "MAX_BYTES", 10)
    large = upload(api, project)
    assert (large.status_code, large.json()["code"]) == (413, "too_large")
    monkeypatch.setattr(documents, "MAX_DOCUMENTS", 0)
    many = upload(api, project, b"Short")
    assert (many.status_code, many.json()["code"]) == (422, "bad_document")
    assert not Document.objects.exists()


def test_documents_of_others_are_not_found(bobs_api: Client, project: Project) -> None:
    assert upload(bobs_api, project).status_code == 404
    document = Document.objects.create(owner=project.owner, project=project, name="a", size=1)
    for path in (f"projects/{project.pk}/documents", f"documents/{document.pk}"):
        assert bobs_api.get(f"{API}/{path}").status_code == 404
    assert bobs_api.get(f"{API}/documents/{document.pk}/passages").status_code == 404
    assert bobs_api.post(f"{API}/documents/{document.pk}/retry").status_code == 404
    assert bobs_api.delete(f"{API}/documents/{document.pk}").status_code == 404
    refused = send(bobs_api, "patch", f"documents/{document.pk}", {"whole": True})
    assert refused.status_code == 404
    assert bobs_api.delete(f"{API}/projects/{project.pk}").status_code == 404
    assert Project.objects.filter(pk=project.pk).exists()
