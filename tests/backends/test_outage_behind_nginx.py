"""A job behind nginx, which answers 502 while its llama.cpp is away."""

import asyncio
import logging
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tests.backends.backend import Backend
from tests.backends.stacks.chains import nginx_before
from tests.backends.workbench import Workbench, workbench_of
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import write_tiny_gguf

log = logging.getLogger(__name__)

ROWS = 300
OUTAGE_SECONDS = float(os.environ.get("WORKBENCH_TEST_OUTAGE_SECONDS", "8"))
RESUMED_WITHIN = 60.0  # seconds, on any machine; it is a few

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("loop_closed"),
    pytest.mark.timeout(300 + OUTAGE_SECONDS),
]


@pytest.fixture
def llama(tmp_path: Path) -> Iterator[LlamaProcess]:
    model = write_tiny_gguf(tmp_path / "alpha.gguf")
    with LlamaProcess(model, parallel=2) as running:
        yield running


@pytest.fixture
def workbench(alice: User) -> Workbench:
    alice.is_staff = True
    alice.save()
    return workbench_of(alice)


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


async def test_a_job_survives_an_outage_behind_nginx(
    llama: LlamaProcess, workbench: Workbench, tmp_path: Path
) -> None:
    nginx, root = nginx_before(llama.root_url, tmp_path)
    with nginx:
        known = await workbench.add(Backend("nginx", "", f"{root}/v1", llama.api_key))
        job = await workbench.job(known["models"][0]["id"], ROWS)
        async with workbench.pumping():
            await workbench.until_job(job, lambda job: job["counts"]["accepted"] > 2)
            await asyncio.to_thread(llama.kill)
            waiting = await workbench.until_job(job, lambda job: job["reason"])
            assert waiting["reason"].startswith("Waiting for the model server"), waiting
            await asyncio.sleep(OUTAGE_SECONDS)  # the outage itself
            assert await asyncio.to_thread(status_of, f"{root}/health") == 502
            before = (await workbench.job_state(job))["counts"]["accepted"]
            assert 0 < before < ROWS
            await asyncio.to_thread(llama.start)
            back = time.monotonic()
            await workbench.until_job(job, lambda job: job["counts"]["accepted"] > before)
            resumed = time.monotonic() - back
            done = await workbench.until_done(job)
    log.info("%.0f s away, resumed after %.1f s", OUTAGE_SECONDS, resumed)
    assert resumed < RESUMED_WITHIN
    assert (done["status"], done["counts"]["failed"]) == ("done", 0), done
    assert [row["index"] for row in await workbench.rows(job)] == list(range(ROWS))
