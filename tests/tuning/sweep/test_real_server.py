"""`manage.py sweep` and its parts at a real llama.cpp."""

import asyncio
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from apps.llm.permits import Lane, read_occupancy
from apps.servers.models import Server
from apps.servers.services import hold_slot, slot_terms
from apps.tuning.sweep.results import SweepResults
from apps.tuning.sweep.services import PAUSED, Progress, choose_model, sweep_server
from tests.conftest import SLOTS
from tests.llama_process import free_port
from tests.tuning.sweep.short import shorten

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "idle_slots"),
]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)


async def ignore(progress: Progress) -> None:
    pass


def sweep(*arguments: str) -> tuple[str, str]:
    out, said = StringIO(), StringIO()
    call_command("sweep", *arguments, stdout=out, stderr=said)
    return out.getvalue(), said.getvalue()


def test_sweep_of_a_real_server_prints_all_tables(server: Server) -> None:
    text, said = sweep("Chat", "--markdown")
    for title in (
        "Rows in parallel",
        "Sequences at the same time (prompts of",
        "Chat of 4 turns (last prompt: ",
        "tokens, uncached",
        "tokens, cached\n",
        "tokens, cached, JSON schema",
    ):
        assert f"### {title}" in text or title in text
    assert "Best number of rows in parallel: " in text
    assert f"{SLOTS} slots of 4,096 tokens, build " in text
    assert "Started 20" in text
    assert text.count("| 4 |") >= 8
    assert "Stopped" not in text
    assert "23 of 23: 4 sequences" in said
    assert "| 95%" in text or "| 9" in text


@pytest.mark.usefixtures("loop_closed")
async def test_sweep_pauses_while_a_person_uses_the_server_and_then_repeats(server: Server) -> None:
    target = await choose_model(server)
    seen: list[str] = []
    came, may_go = asyncio.Event(), asyncio.Event()

    async def person() -> None:
        await came.wait()
        async with hold_slot(target.server, lane=Lane.INTERACTIVE, person=1):
            await may_go.wait()

    async def follow(progress: Progress) -> None:
        seen.append(progress.doing)
        if len(seen) == 3:
            came.set()
        if progress.doing == PAUSED:
            held = (await read_occupancy(slot_terms(target.server, target.model))).held
            assert [one.lane for one in held] == [Lane.INTERACTIVE]
            may_go.set()

    asked = asyncio.create_task(person())
    results = await sweep_server(target, 30, follow)
    await asked
    place = seen.index(PAUSED)
    assert seen[place - 1] == seen[place + 1]
    assert results.paused_seconds > 0
    assert len(results.points) == 7 * 3
    assert results.notes == []
    assert SweepResults.from_json(results.to_json()) == results


@pytest.mark.usefixtures("loop_closed")
async def test_cancelled_sweep_leaves_no_request(server: Server) -> None:
    target = await choose_model(server)
    begun = asyncio.Event()

    async def follow(progress: Progress) -> None:
        if progress.planned:
            begun.set()

    task = asyncio.create_task(sweep_server(target, 1, follow))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await read_occupancy(slot_terms(target.server, target.model))).held == []


@pytest.mark.usefixtures("loop_closed")
async def test_sweep_ends_with_its_minutes_and_says_what_is_missing(server: Server) -> None:
    target = await choose_model(server)
    async with hold_slot(target.server, lane=Lane.INTERACTIVE, person=1):
        results = await sweep_server(target, 0.005, ignore)
    assert results.points == []
    assert results.notes == ["Time was up after 0 of 0 measurements."]


def test_server_that_is_away_is_an_error() -> None:
    Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(CommandError, match=r"“Away” is not ready\. The model server is not"):
        sweep("Away")


def test_server_that_only_embeds_is_an_error(embedding_server: Server) -> None:
    with pytest.raises(CommandError, match=r"only embeds texts\. Choose a server or model"):
        sweep("Embeddings")


def test_unknown_names_and_minutes_are_errors(server: Server) -> None:
    with pytest.raises(CommandError, match="no server “Nobody”"):
        sweep("Nobody")
    with pytest.raises(CommandError, match="“Chat” has no model “gpt”"):
        sweep("Chat", "--model", "gpt")
    with pytest.raises(CommandError, match="--minutes: more than 0, at most 120"):
        sweep("Chat", "--minutes", "0")
