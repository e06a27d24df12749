"""`manage.py doctor` from end to end, beside others who use the server."""

from contextlib import AsyncExitStack

import pytest
from django.core.management import CommandError

from apps.llm.permits import Lane
from apps.servers.models import Server
from apps.servers.services import hold_slot, refresh_server
from apps.tuning.doctor.services import examine_server
from tests.conftest import SLOTS
from tests.llama_process import free_port
from tests.tuning.doctor.command import doctor

pytestmark = pytest.mark.django_db(transaction=True)


def test_doctor_prints_a_finding_and_returns_one(server: Server, idle_slots: None) -> None:
    code, text, notes = doctor("Chat")
    assert (code, notes) == (1, "")
    assert text.splitlines() == [
        f"Chat, {Server.objects.get().model_ids[0]}: 1 found",
        "Fault: The model is not told of its tools. [no-tools]",
        "  Evidence: The prompt of a request with one tool does not contain the tool’s name. "
        "/props reports supports_tools: false.",
        "  Cost: The model cannot call any tool.",
        "  Advice: Use a chat template that knows tools, if the model was trained for them.",
        "  Flags: --chat-template-file FILE",
    ]


def test_doctor_that_only_reads_finds_what_is_reported(server: Server) -> None:
    assert doctor("--read-only") == (0, "", "")


def test_doctor_does_not_call_a_server_healthy_that_does_not_answer() -> None:
    Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")
    code, text, notes = doctor()
    assert (code, text) == (1, "")
    assert notes.startswith("Away: The model server is not responding.")


def test_doctor_refuses_a_name_that_no_server_has() -> None:
    with pytest.raises(CommandError, match="no server “Nobody”"):
        doctor("Nobody")


@pytest.mark.usefixtures("loop_closed", "idle_slots")
async def test_doctor_asks_nothing_while_all_slots_are_in_use(server: Server) -> None:
    server = await refresh_server(server)  # tells how many slots it has
    async with AsyncExitStack() as others:
        for _ in range(SLOTS):
            await others.enter_async_context(hold_slot(server, lane=Lane.INTERACTIVE, person=1))
        [found] = await examine_server(server)
    assert found.findings == []
    assert found.notes == ["No slot was idle. Not all questions were asked. Try again later."]
