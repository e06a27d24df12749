"""What a job's page says of its slots: why fewer are used, what was measured, how it went."""

from typing import Any

import pytest
import redis
from django.test import Client
from django.urls import reverse

from apps.batch.models import Batch, ThroughputHistory
from apps.batch.services import ProbeResult
from apps.generation.models import Job
from apps.generation.review.job_status import describe_probe, why_fewer
from apps.llm.permits.keys import permit_key
from apps.servers.models import Server
from tests.environment import REDIS_SOCKET

PROBE = {"model": "m", "slots": 4, "rates": {"1": 30.0, "2": 55.4, "4": 80.0}, "best": 4}


@pytest.fixture
def batch(job: Job) -> Batch:
    """On a server of four slots of 4,096 tokens each, not known to be apart."""
    facts: dict[str, Any] = {"slots": 4, "context": 4096}
    Server.objects.filter(pk=job.batch.server_id).update(stored_facts=facts, state="ready")
    return Batch.objects.select_related("server").get(pk=job.batch_id)


def test_rows_that_do_not_fit_into_a_shared_context(batch: Batch) -> None:
    batch.spec["recipe"]["params"]["max_tokens"] = 1900
    assert why_fewer(batch, 2) == ""  # nothing says that they share one
    assert batch.server is not None
    batch.server.kv_unified = True
    sentence = why_fewer(batch, 2)
    assert "4 slots, but they share one context of 4,096 tokens" in sentence
    assert "so only 2 fit in parallel" in sentence
    assert "-np 4" in sentence
    batch.server.kv_unified = False
    assert why_fewer(batch, 2) == ""


def test_other_reasons_and_none(batch: Batch) -> None:
    assert why_fewer(batch, 4) == ""
    assert why_fewer(batch, 3) == ""
    with redis.Redis(unix_socket_path=str(REDIS_SOCKET)) as client:
        client.set(permit_key(batch.server_id or 0, "wait-reason"), "people", px=5000)
    assert "One slot is kept free" in why_fewer(batch, 3)
    batch.width = 2
    assert why_fewer(batch, 2).startswith("Max rows in parallel is set to 2.")


def test_a_server_that_does_not_report_its_slots(batch: Batch) -> None:
    assert batch.server is not None
    batch.server.stored_facts = {}
    assert "does not report how many requests it takes at once" in why_fewer(batch, 1)
    batch.server.parallel = 1
    assert why_fewer(batch, 1) == ""


@pytest.mark.parametrize(
    ("best", "fixed", "said"),
    [
        (4, None, "1 in parallel 30, 2 in parallel 55, 4 in parallel 80. Best: all slots."),
        (2, None, "Best: 2 in parallel, which is now used."),
        (4, 2, "Best: 4 in parallel. You set 2."),
    ],
)
def test_describe_probe_names_the_best_width(best: int, fixed: int | None, said: str) -> None:
    described = describe_probe(ProbeResult.from_json(PROBE | {"best": best}), fixed)
    assert described.startswith("Measured at the start (tokens/s): 1 in parallel 30")
    assert said in described


def test_the_page_shows_both_and_the_chart_its_points(
    browser: Client, bobs_browser: Client, batch: Batch, job: Job
) -> None:
    course = reverse("generation:throughput", args=[job.pk])
    assert browser.get(course).json() == {"points": [], "slots": 4}
    ThroughputHistory.objects.create(batch=batch, points=[[100.0, 5.0, 20.0, 3, 60]], probe=PROBE)
    Batch.objects.filter(pk=batch.pk).update(width=1)
    page = browser.get(reverse("generation:quality", args=[job.pk])).content.decode()
    assert "You set 1" in page
    assert "Max rows in parallel is set to" in page
    assert course in page
    assert browser.get(course).json() == {"points": [[100.0, 5.0, 20.0, 3, 60]], "slots": 4}
    assert bobs_browser.get(course).status_code == 404
    assert browser.post(course).status_code == 405


def test_a_server_that_says_nothing_of_its_cache_has_not_said_0(
    api: Client, browser: Client, job: Job
) -> None:
    def shown() -> tuple[object, str, str]:
        share = api.get(f"/api/v1/jobs/{job.pk}").json()["cached_share"]
        pages = [f"/generate/{job.pk}/", f"/generate/{job.pk}/rows/0/"]
        return share, *(browser.get(page).content.decode() for page in pages)

    Batch.objects.update(cached_tokens=0)
    Server.objects.update(kind="llama-server")
    share, page, row = shown()
    assert share == 0.0
    assert "0% of the prompt cached" in page
    assert "cached)" in row
    Server.objects.update(kind="openai")
    share, page, row = shown()
    assert share is None
    assert "of the prompt cached" not in page
    assert "cached)" not in row
    assert api.get(f"/api/v1/jobs/{job.pk}/card").json()["tokens"]["cached"] is None


def test_more_rows_than_were_wanted_are_explained(browser: Client, job: Job) -> None:
    Batch.objects.update(goal=4)
    page = browser.get(f"/generate/{job.pk}/").content.decode()
    assert "1 more than requested" in page
    Batch.objects.update(goal=5)
    assert "than requested" not in browser.get(f"/generate/{job.pk}/").content.decode()
