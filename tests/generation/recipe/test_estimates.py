"""What a job will take: a range, from earlier jobs on the same server or from the rows tried."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.batch.handlers import RowOutcome, Verdict
from apps.batch.models import Batch, Item
from apps.generation.recipe.estimates import (
    Estimate,
    estimate_from_job,
    estimate_job,
    recent_rates,
)
from apps.generation.rows.generate_row import GeneratedRow
from apps.generation.rows.preview import Preview
from apps.llm.events import Usage
from apps.servers.models import Server
from apps.servers.services import Target
from tests.generation.conftest import new_job
from tests.markup import visible_text

pytestmark = pytest.mark.django_db


@pytest.fixture
def eight(server: Server) -> Target:
    server.parallel = 8
    server.save()
    return Target(server, "m")


def tried(*seconds: float, written: int = 100, good: int | None = None) -> list[Preview]:
    usage = Usage(40, 0, written)
    generated = GeneratedRow(usage=usage)
    good = len(seconds) if good is None else good
    verdicts = ["" if at < good else "judged" for at in range(len(seconds))]
    return [
        Preview(generated, RowOutcome(Verdict.ACCEPTED, code=code), seconds=each)
        for each, code in zip(seconds, verdicts, strict=True)
    ]


def of(target: Target, previews: list[Preview], rows: int, **options: Any) -> Estimate:
    found = estimate_job(target, previews, rows, **{"refill": False, **options})
    assert found is not None
    assert found.fastest is not None
    assert found.slowest is not None
    assert found.fastest < found.slowest
    return found


def earlier(owner: User, target: Target, **values: Any) -> Batch:
    job = new_job(owner, target.server)
    values = {"model": "m", "active_seconds": 100.0, "completion_tokens": 50_000, **values}
    Batch.objects.filter(pk=job.batch_id).update(**values)
    return Batch.objects.get(pk=job.batch_id)


def test_without_earlier_jobs_it_lies_between_no_gain_and_full_gain(eight: Target) -> None:
    found = of(eight, tried(2.0, 2.0, 2.0), 240)
    assert found.from_jobs == 0
    assert found.fastest == pytest.approx(240 * 2 / 8)
    assert found.slowest == pytest.approx(240 * 2 / 3 + 2)


def test_a_limit_of_rows_at_once_counts(eight: Target) -> None:
    found = of(eight, tried(2.0, 2.0, 2.0), 100, width=2)
    assert found.fastest == pytest.approx(100)


def test_a_job_takes_at_least_as_long_as_a_row(eight: Target) -> None:
    assert of(eight, tried(4.0, 4.0, 4.0), 1).fastest == 4.0


def test_earlier_jobs_with_this_model_say_how_fast_all_slots_are(
    alice: User, eight: Target
) -> None:
    earlier(alice, eight)  # 500 tokens/s
    earlier(alice, eight, completion_tokens=100_000)  # 1,000 tokens/s
    earlier(alice, eight, model="other", completion_tokens=10**7)
    earlier(alice, eight, width=1, completion_tokens=10)
    earlier(alice, eight, active_seconds=1.0)
    assert sorted(recent_rates(eight.server, "m")) == [500, 1000]
    found = of(eight, tried(9.0, 9.0, 9.0, written=100), 10_000)
    assert found.from_jobs == 2
    work = 10_000 * (100 + 40 / 8)
    assert found.fastest == pytest.approx(work / 1000 / 1.25)
    assert found.slowest == pytest.approx(work / 500 * 1.25 + 2)


def test_what_is_rejected_is_made_again_where_it_is_replaced(eight: Target) -> None:
    once = of(eight, tried(2.0, 2.0, 2.0, good=1), 100)
    again = of(eight, tried(2.0, 2.0, 2.0, good=1), 100, refill=True)
    assert again.output_tokens == 3 * once.output_tokens
    assert again.slowest == pytest.approx(3 * (100 * 2 / 3) + 2)
    none = of(eight, tried(2.0, 2.0, 2.0, good=0), 100, refill=True)
    assert none.output_tokens == 5 * once.output_tokens


def test_estimate_job_gives_none_without_answers(eight: Target) -> None:
    assert estimate_job(eight, [Preview(None, None, "gone")], 10, refill=True) is None


def test_the_editor_says_what_is_known_before_anything_was_tried(
    browser: Client, alice: User, eight: Target
) -> None:
    assert "not measured yet" in browser.get("/generate/new/?recipe=blank").content.decode()
    eight.server.defaults.filter(use="generation").update(model="m")
    batch = earlier(alice, eight)
    page = browser.get("/generate/new/?recipe=blank").content.decode()
    assert "500 tokens/s in earlier jobs with this model" in visible_text(page)
    Item.objects.filter(batch=batch).update(status="accepted")
    seconds = estimate_from_job(batch, 10)
    assert seconds == (80.0, 127.0)
    page = browser.get(f"/generate/new/?like={batch.job.pk}").content.decode()
    assert "1 min 20 s to 2 min 7 s at the pace of the earlier job" in visible_text(page)


@pytest.mark.parametrize(("accepted", "seconds"), [(2, (400.0, 627.0)), (0, None)])
def test_a_job_that_replaces_rows_takes_its_time_for_each_accepted_one(
    alice: User, eight: Target, accepted: int, seconds: Any
) -> None:
    batch = earlier(alice, eight, goal=2)
    Item.objects.filter(batch=batch).update(status="rejected")
    Item.objects.filter(batch=batch, index__lt=accepted).update(status="accepted")
    assert estimate_from_job(batch, 10) == seconds
