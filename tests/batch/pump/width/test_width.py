"""A job finds by itself how many rows at once a server works on that does not report it."""

from collections.abc import Iterator

import pytest

from apps.batch.jobs.progress import compute_progress
from apps.batch.models import Item, ItemStatus
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.slots import width_search
from tests.batch.conftest import MakeBatch, run_until_done
from tests.servers.conftest import server_at
from tests.standins import Model, Standin

pytestmark = pytest.mark.django_db(transaction=True)

SLOTS = 8


@pytest.fixture(scope="module")
def standin() -> Iterator[Standin]:
    """Eight requests at once, each of 8 tokens in a fifth of a second."""
    with Standin("saturating", None, models=[Model("m", slots=SLOTS)]) as standin:
        yield standin


@pytest.fixture
def server(db: None, standin: Standin, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(width_search, "STEP_SECONDS", 0.4)
    standin.change(refuses_above=0, reports_usage=True)
    return server_at(standin)


async def test_a_job_finds_the_width_and_the_server_keeps_it(
    server: Server, standin: Standin, make_batch: MakeBatch
) -> None:
    await in_db(make_batch, 230)
    await run_until_done(server)
    assert await in_db(Item.objects.filter(status=ItemStatus.ACCEPTED).count) == 230
    found = (await in_db(Server.objects.get)).facts.measured_widths["m"]
    # How near it comes to the best depends on the machine's pace here: tests/servers/slots holds it
    # with a clock of its own, and bench.batch.width measures it.
    assert 1 <= found.value <= width_search.MAX_WIDTH
    assert standin.most["m"] > 1


async def test_the_owner_s_number_is_never_exceeded(
    server: Server, standin: Standin, make_batch: MakeBatch
) -> None:
    standin.change(refuses_above=3)
    await in_db(Server.objects.update, parallel=3)
    await in_db(make_batch, 30)
    before = len(standin.asked)
    await run_until_done(server)
    asked = [asked for asked in standin.asked[before:] if "completions" in asked["path"]]
    assert {one["status"] for one in asked} == {200}
    assert not (await in_db(Server.objects.get)).facts.measured_widths


async def test_refusals_make_it_narrower_and_no_row_fails(
    server: Server, standin: Standin, make_batch: MakeBatch
) -> None:
    standin.change(refuses_above=3)
    await in_db(make_batch, 20)
    await run_until_done(server)
    assert await in_db(Item.objects.filter(status=ItemStatus.ACCEPTED).count) == 20
    found = (await in_db(Server.objects.get)).facts.measured_widths["m"]
    assert found.value <= 3


async def test_answers_without_usage_are_estimated_and_never_zero(
    server: Server, standin: Standin, make_batch: MakeBatch
) -> None:
    standin.change(reports_usage=False)
    batch = await in_db(make_batch, 3)
    await run_until_done(server)
    await in_db(batch.refresh_from_db)
    assert (batch.prompt_tokens, batch.completion_tokens) == (0, 0)
    assert batch.estimated_tokens >= 3 * 8
    assert (await in_db(compute_progress, batch)).tokens_per_s is None
    assert not (await in_db(Item.objects.first)).has_usage
