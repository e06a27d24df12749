"""The choice between one server and all with the same model, and the page of such a job."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from apps.batch.models import BatchServer, BatchStatus, ItemStatus
from apps.generation.models import Job
from apps.servers.models import DefaultServer, Kind, Server, State, Use
from tests.generation.views.test_editor import FORM

pytestmark = pytest.mark.django_db


def server_of(name: str, model: str = "qwen.gguf", **values: object) -> Server:
    facts = {"models": [{"id": model}], "slots": 4}
    known = {"kind": Kind.LLAMA_SERVER, "state": State.READY, "stored_facts": facts} | values
    return Server.objects.create(name=name, base_url=f"http://{name}.test/v1", **known)


@pytest.fixture
def boxes() -> list[Server]:
    big, small = server_of("Big"), server_of("Small")
    DefaultServer.objects.create(use=Use.GENERATION, server=big)
    return [big, small]


def test_the_choice_is_offered_where_two_servers_share_a_model(
    browser: Client, boxes: list[Server]
) -> None:
    page = browser.get("/generate/new/?recipe=blank").content.decode()
    assert re.search(r'name="all_servers"\s+value="1"\s+checked', page)
    boxes[1].delete()
    server_of("Other", "gemma.gguf")
    assert "all_servers" not in browser.get("/generate/new/?recipe=blank").content.decode()


@pytest.mark.parametrize(("given", "stored"), [({"all_servers": "1"}, True), ({}, False)])
def test_a_job_keeps_the_choice(
    browser: Client, boxes: list[Server], given: dict[str, str], stored: bool
) -> None:
    browser.post("/generate/new/", FORM | given)
    assert Job.objects.get().batch.all_servers is stored


@pytest.fixture
def job(browser: Client, boxes: list[Server]) -> Job:
    """A job whose own server is away; the other one has done two of its rows."""
    browser.post("/generate/new/", FORM | {"all_servers": "1"})
    job = Job.objects.get()
    big, small = boxes
    away = "Waiting for the model server: it is not responding."
    job.batch.servers.create(server=big, model="qwen.gguf", state="away", reason=away)
    job.batch.servers.create(server=small, model="qwen.gguf")
    job.batch.items.filter(index__lt=2).update(
        status=ItemStatus.ACCEPTED, server=small.pk, finished=timezone.now()
    )
    job.batch.status, job.batch.started = BatchStatus.RUNNING, timezone.now()
    job.batch.save()
    return job


def test_the_page_of_a_job_shows_each_server(browser: Client, job: Job) -> None:
    page = " ".join(browser.get(f"/generate/{job.pk}/").content.decode().split())
    assert 'Away <span class="muted">Waiting for the model server' in page
    assert "Small" in page
    assert "notice-warn" not in page.split('id="job-servers"')[0].split('id="progress"')[-1]


def test_the_api_returns_each_server(browser: Client, job: Job) -> None:
    found = browser.get(f"/api/v1/jobs/{job.pk}").json()
    assert found["all_servers"] is True
    assert [(s["name"], s["state"], s["rows"], s["width"]) for s in found["servers"]] == [
        ("Big", "away", 0, 4),
        ("Small", "working", 2, 4),
    ]


def test_the_page_says_that_a_fallback_stands_in(browser: Client, job: Job) -> None:
    BatchServer.objects.filter(state="working").update(is_fallback=True)
    page = browser.get(f"/generate/{job.pk}/").content.decode()
    assert "“Big” does not answer. Rows now come from “Small”." in page


def test_a_job_like_this_keeps_the_choice(browser: Client, job: Job) -> None:
    page = browser.get(f"/generate/new/?like={job.pk}").content.decode()
    assert re.search(r'name="all_servers"\s+value="1"\s+checked', page)
