"""GET and POST /servers/N/doctor/"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.servers.models import Server, State
from apps.tuning.doctor.amount import Unit
from apps.tuning.doctor.examination import Examination
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.measurements import Measurement
from apps.tuning.models import DoctorRun
from apps.tuning.runs.doctor_services import active_examination, end_run
from apps.work.models import Task, TaskState
from tests.markup import visible_text

SMALL = Finding(
    code="small-context",
    severity=Severity.FAULT,
    what="A prompt and its answer must fit into 256 tokens.",
    evidence="The server reports 8 slots of 256 tokens each.",
    advice="-c is shared out among the slots.",
    flags=("-c 32768", "-np 8"),
)
COMMAND = "llama-server -m qwen.gguf -c 2048 -np 8"


@pytest.fixture
def gpu(db: None) -> Server:
    return Server.objects.create(
        name="GPU box", base_url="http://127.0.0.1:9/v1", kind="router", state=State.READY
    )


@pytest.fixture
def admin(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client


def context_of(tokens: int) -> Measurement:
    return Measurement(name="Context per slot", value=tokens, unit=Unit.TOKENS)


def examined(server: Server, *findings: Finding, tokens: int = 256, **more: Any) -> DoctorRun:
    one = Examination(
        server.name, "qwen", list(findings), measurements=[context_of(tokens)], **more
    )
    run = DoctorRun.objects.create(server=server)
    end_run(run.pk, "", [one])
    return run


def page(browser: Client, server: Server, query: str = "") -> str:
    answer = browser.get(f"/servers/{server.pk}/doctor/{query}")
    assert answer.status_code == 200
    return visible_text(answer.content.decode())


def test_page_without_an_examination_says_so(admin: Client, browser: Client, gpu: Server) -> None:
    assert "Not examined yet." in page(admin, gpu)
    assert "Ask an admin to examine this server." in page(browser, gpu)


def test_only_admins_examine(browser: Client, gpu: Server) -> None:
    answer = browser.post(f"/servers/{gpu.pk}/doctor/", {"action": "start"})
    assert answer.status_code == 403
    assert not DoctorRun.objects.exists()


def test_an_admin_examines_once_at_a_time(admin: Client, carol: User, gpu: Server) -> None:
    assert admin.post(f"/servers/{gpu.pk}/doctor/", {"action": "start"}).status_code == 302
    run = active_examination(gpu)
    assert run is not None
    assert run.owner == carol
    answer = admin.get(f"/servers/{gpu.pk}/doctor/").content.decode()
    assert 'hx-trigger="every 2s"' in answer
    assert "Waiting for a worker." in answer
    Task.objects.update(state=TaskState.RUNNING)
    assert "Asking a few questions on idle slots." in page(admin, gpu)
    admin.post(f"/servers/{gpu.pk}/doctor/", {"action": "start"})
    assert "is being examined already" in page(admin, gpu)
    assert admin.post(f"/servers/{gpu.pk}/doctor/", {"action": "explode"}).status_code == 400


def test_a_healthy_server_is_quiet(browser: Client, gpu: Server) -> None:
    examined(gpu, tokens=4096)
    shown = page(browser, gpu)
    assert "Nothing found. All is well." in shown
    assert "Mend it" not in shown
    assert "Context per slot 4,096 tokens" in shown


def test_what_could_not_be_asked_is_said(browser: Client, gpu: Server) -> None:
    examined(gpu, notes=["No slot was idle."])
    shown = page(browser, gpu)
    assert "No slot was idle." in shown
    assert "Nothing found, as far as it could be examined." in shown


def test_a_finding_is_shown_with_the_mended_command(browser: Client, gpu: Server) -> None:
    run = examined(gpu, SMALL, command=COMMAND)
    shown = page(browser, gpu)
    assert "Fault A prompt and its answer must fit into 256 tokens." in shown
    assert "Evidence The server reports 8 slots of 256 tokens each." in shown
    assert "Remove − -c 2048" in shown
    assert "Add + -c 32768" in shown
    assert "Keys are hidden" not in shown
    address = f"/servers/{gpu.pk}/doctor/?run={run.pk}&download="
    download = browser.get(f"{address}1")
    assert download["Content-Disposition"] == f'attachment; filename="server-{gpu.pk}.sh"'
    lines = download.content.decode().splitlines()
    assert lines == ["llama-server \\", "  -m qwen.gguf \\", "  -c 32768 \\", "  -np 8"]
    assert browser.get(f"{address}2").status_code == 404


def test_a_hidden_key_has_to_be_put_in_again(browser: Client, gpu: Server) -> None:
    examined(gpu, SMALL, command=f"{COMMAND} --api-key ••••")
    assert "Keys are hidden: put yours in again." in page(browser, gpu)


def test_a_server_that_hides_its_command_gets_the_flags_alone(browser: Client, gpu: Server) -> None:
    examined(gpu, SMALL)
    assert "This server does not report its command line." in page(browser, gpu)


def test_a_mended_server_shows_before_and_after(browser: Client, gpu: Server) -> None:
    first = examined(gpu, SMALL, command=COMMAND)
    second = examined(gpu, tokens=4096)
    shown = page(browser, gpu)
    assert "Mended A prompt and its answer must fit into 256 tokens." in shown
    assert "Context per slot 256 tokens 4,096 tokens better" in shown
    swapped = page(browser, gpu, f"?run={first.pk}&with={second.pk}")
    assert "New A prompt and its answer must fit into 256 tokens." in swapped
    assert "4,096 tokens 256 tokens worse" in swapped


def test_runs_of_another_server_are_not_shown(browser: Client, gpu: Server) -> None:
    other = Server.objects.create(name="Other", base_url="http://127.0.0.1:10/v1")
    run = examined(other, SMALL)
    assert "Not examined yet." in page(browser, gpu, f"?run={run.pk}")
