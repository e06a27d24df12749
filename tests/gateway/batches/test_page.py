"""The page of a program's batch."""

import json
import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from apps.batch.models import Batch, BatchServer, Item
from apps.core.models import ApiKey
from apps.gateway.models import FileBatch
from apps.gateway.pools.look_ups import forget_servers
from apps.servers.models import Server
from tests.gateway.batches.steps import check, finish, line, start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def batch(alice: User, server: Server) -> FileBatch:
    forget_servers()
    key, _ = ApiKey.issue(user=alice, name="laptop")
    return check(start(key, line("a") + line("b")))


@async_to_sync
async def content(answer: Any) -> bytes:
    return b"".join([piece async for piece in answer.streaming_content])


def page(browser: Client, batch: FileBatch, **headers: str) -> str:
    answer = browser.get(f"/servers/batches/{batch.job_id}/", headers=headers)
    return " ".join(answer.content.decode().split())


def test_a_batch_is_paused_resumed_and_cancelled(browser: Client, batch: FileBatch) -> None:
    assert "Queued" in page(browser, batch)
    for action, expected in (("pause", "Paused"), ("resume", "Queued"), ("cancel", "Writing")):
        answer = browser.post(f"/servers/batches/{batch.job_id}/{action}/")
        assert answer.status_code == 302
        assert expected in page(browser, batch, **{"HX-Request": "true"})
    refused = browser.post(f"/servers/batches/{batch.job_id}/resume/", follow=True)
    assert "This action is not available" in refused.content.decode()
    assert finish(batch).status == "cancelled"
    ended = page(browser, batch)
    assert "Cancelled" in ended
    assert "Download errors" in ended
    assert "Cancel batch" not in ended


def test_results_are_downloaded_by_their_owner_alone(
    browser: Client, bobs_browser: Client, batch: FileBatch
) -> None:
    Item.objects.update(
        status="accepted", output={"status_code": 200}, raw="{}", finished=timezone.now()
    )
    Batch.objects.update(status="done")
    assert finish(batch).status == "completed"
    assert "2 of 2 answered" in page(browser, batch).replace(
        '</span> <span class="job-wanted">', " "
    )
    url = f"/servers/batches/{batch.job_id}/results/output/"
    answer = browser.get(url)
    assert "_output.jsonl" in answer["Content-Disposition"]
    lines = content(answer).splitlines()
    assert [json.loads(one)["custom_id"] for one in lines] == ["a", "b"]
    assert browser.get(url.replace("output", "errors")).status_code == 404
    for path in (url, f"/servers/batches/{batch.job_id}/"):
        assert bobs_browser.get(path).status_code == 404
    assert bobs_browser.post(f"/servers/batches/{batch.job_id}/cancel/").status_code == 404


def test_several_servers_of_a_batch_are_listed(
    browser: Client, batch: FileBatch, server: Server
) -> None:
    assert "Servers of this job" not in page(browser, batch)
    other = Server.objects.create(name="Small box", base_url="http://127.0.0.1:9/v1")
    for one in (server, other):
        BatchServer.objects.create(batch_id=batch.job_id, server=one)
    found = page(browser, batch)
    assert "Servers of this job" in found
    assert "Small box" in found


def test_the_generate_page_lists_a_batch_with_a_link(
    browser: Client, bobs_browser: Client, batch: FileBatch
) -> None:
    found = browser.get("/generate/").content.decode()
    assert "Batches of programs" in found
    assert f'href="/servers/batches/{batch.job_id}/"' in found
    assert "No jobs yet" not in found
    assert "Batches of programs" not in browser.get("/generate/?find=zzz").content.decode()
    assert "Batches of programs" not in bobs_browser.get("/generate/").content.decode()


def marked(browser: Client, path: str) -> list[str]:
    """Return the places that the rail marks on a page."""
    rail = browser.get(path).content.decode().partition("</nav>")[0]
    return re.findall(r'href="([^"]*)" aria-current="page"', rail)


def test_the_rail_marks_where_a_page_of_programs_is_reached_from(
    browser: Client, batch: FileBatch
) -> None:
    assert marked(browser, f"/servers/batches/{batch.job_id}/") == ["/generate/"]
    for path in ("/servers/usage/", "/servers/connect/"):
        assert marked(browser, path) == ["/servers/"]
