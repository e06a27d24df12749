"""The doctor at a real llama-server behind a proxy."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync

from apps.llm.client import ChatRequest
from apps.llm.errors import CutOff
from apps.llm.permits import Lane, read_totals
from apps.servers.models import Server, State
from apps.servers.services import choose_target, hold_slot, read_health, refresh_server
from apps.tuning.doctor.questions import liveness, streams
from tests.tiny_gguf import TOOL_TEMPLATE, write_tiny_gguf
from tests.tuning.doctor.command import doctor
from tests.tuning.doctor.real.proxies import Buffering, Cutting, Proxy, ReadingOn, Silent, before
from tests.tuning.doctor.real.servers import HEALTHY, add, running

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_tiny_gguf(folder / "chat.gguf", template=TOOL_TEMPLATE)
    return folder


@pytest.fixture
def url(models: Path, tmp_path: Path) -> Iterator[str]:
    with running(models, tmp_path, "chat", HEALTHY) as url:
        yield url


def test_doctor_says_nothing_of_a_proxy_that_passes_all_on(url: str) -> None:
    with before(url, Proxy) as at_proxy:
        add(at_proxy)
        assert doctor() == (0, "", "")


def test_doctor_names_a_proxy_that_reads_on_with_its_measured_cost(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tiny model writes thousands of tokens a second: few would be written before it is seen.
    monkeypatch.setattr(streams, "MOST_TOKENS", 8_192)
    monkeypatch.setattr(streams, "LONG_SECONDS", 60.0)
    roomy = [{"16384": "65536"}.get(flag, flag) for flag in HEALTHY]
    with (
        running(models, tmp_path, "chat", tuple(roomy)) as url,
        before(url, ReadingOn) as at_proxy,
    ):
        add(at_proxy)
        code, text, notes = doctor()
    assert (code, notes) == (1, "")
    assert re.findall(r"\[([a-z-]+)\]$", text, re.MULTILINE) == ["not-cancelled"]
    cost = re.search(r"Cost: ([\d.]+) s of a slot and ([\d,]+) tokens", text)
    assert cost is not None
    assert float(cost[1]) > 0
    assert int(cost[2].replace(",", "")) > 3


def test_doctor_names_a_proxy_that_holds_answers_back_with_the_delay(url: str) -> None:
    with before(url, Buffering) as at_proxy:
        add(at_proxy)
        code, text, notes = doctor()
    assert (code, notes) == (1, "")
    assert re.findall(r"\[([a-z-]+)\]$", text, re.MULTILINE) == ["buffered"]
    delay = re.search(r"Each token came ([\d.]+) s late", text)
    assert delay is not None
    assert float(delay[1]) > 0.2


def test_doctor_names_a_server_that_is_ready_and_returns_no_token(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(liveness, "LOOK_SECONDS", 0.1)
    with before(url, Silent) as at_proxy:
        server = add(at_proxy)
        code, text, notes = doctor()
    assert (code, notes) == (1, "")
    assert re.findall(r"\[([a-z-]+)\]$", text, re.MULTILINE) == ["stuck"]
    # A second, and more where this machine is busy.
    assert re.search(r"no token after \d+ s\. /slots showed a slot with nothing to do\.", text)
    assert re.search(r"Cost: Each request waits in vain: \d+ s here\.", text)
    server.refresh_from_db()
    assert read_health([server])[server.pk].state == State.STUCK


async def _ask(server: Server) -> None:
    target = choose_target(await refresh_server(server))
    request = ChatRequest(target.model, [{"role": "user", "content": "Count."}], 64, {})
    with pytest.raises(CutOff):
        async with hold_slot(server, lane=Lane.BATCH, model=target.model):
            await target.client.complete(request)


def test_requests_that_a_proxy_ends_are_counted_with_their_age(url: str) -> None:
    with before(url, Cutting) as at_proxy:
        server = add(at_proxy)
        async_to_sync(_ask)(server)
    [counts] = read_totals([server.pk])[server.pk].values()
    assert (counts["cut_off"], counts["failed"]) == (1, 1)
    assert counts["cut_off_cs2"] == counts["cut_off_cs"] ** 2
