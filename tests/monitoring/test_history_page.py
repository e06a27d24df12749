"""GET /servers/<pk>/history/"""

import time

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement
from apps.servers.models import Server
from tests.markup import visible_text

BUSY = Measurement(
    **{"readings": 1, "seconds": 30, "busy": 2, "slots": 4, "requests": 3},
    **{"prompt": 600, "completion": 300, "first_tokens": [0, 0, 3]},
)


@pytest.fixture
def gpu(db: None) -> Server:
    return Server.objects.create(name="GPU", base_url="http://gpu/v1")


def page_of(browser: Client, server: Server, query: str = "") -> str:
    return visible_text(browser.get(f"/servers/{server.pk}/history/{query}").content.decode())


def test_history_shows_rates_and_says_what_is_not_reported(browser: Client, gpu: Server) -> None:
    store.add(gpu, {"": BUSY, "qwen": BUSY}, time.time())
    page = page_of(browser, gpu)
    assert "Generated tokens/s 10 peak 10" in page
    assert "Prompt cache hits not reported" in page
    assert "The server answered all checks." in page


@pytest.mark.parametrize("span", ["hour", "day", "week", "month"])
def test_every_span_shows_what_was_just_measured(browser: Client, gpu: Server, span: str) -> None:
    store.add(gpu, {"": BUSY}, time.time())
    answer = browser.get(f"/servers/{gpu.pk}/history/?span={span}")
    assert b"<polyline" in answer.content
    assert b"Busy slots: 2, peak 2" in answer.content


def test_a_model_has_its_own_charts(browser: Client, gpu: Server) -> None:
    quiet = Measurement(readings=1, seconds=30, requests=1, completion=30)
    store.add(gpu, {"": BUSY + quiet, "qwen": quiet}, time.time())
    assert "Generated tokens/s 1 peak 1" in page_of(browser, gpu, "?model=qwen")
    assert "Generated tokens/s 5" in page_of(browser, gpu, "?model=unknown")


def test_history_of_a_server_that_was_away_says_so(browser: Client, gpu: Server) -> None:
    store.add(gpu, {"": Measurement(readings=4, away=1)}, time.time())
    assert "did not answer in 25.0% of the checks" in page_of(browser, gpu)


def test_loads_are_drawn_where_models_are_swapped(browser: Client, gpu: Server) -> None:
    store.add(gpu, {"": BUSY}, time.time())
    assert "Models loaded" not in page_of(browser, gpu)
    store.add(gpu, {"": Measurement(loads=3)}, time.time())
    assert "Models loaded 3 peak 3" in page_of(browser, gpu)


def test_gpus_are_drawn_where_they_are_reported(browser: Client, gpu: Server) -> None:
    on_gpu = Measurement(
        gpu_readings=2, gpu_memory=6 * 1024, gpu_busy=0.5, gpu_busy_readings=1, gpu_power=500
    )
    store.add(gpu, {"": BUSY + on_gpu, "qwen": BUSY}, time.time())
    page = page_of(browser, gpu)
    assert "GPU memory in GiB 3 peak 3" in page
    assert "GPU busy 50% peak 50%" in page
    assert "GPU power in W 250 peak 250" in page
    assert "GPU figures are of the whole machine." in page
    assert "GPU" not in page_of(browser, gpu, "?model=qwen").replace("History of GPU", "")


def test_without_samples_the_page_says_when_they_come(browser: Client, gpu: Server) -> None:
    assert "No samples in this time." in page_of(browser, gpu)
    assert browser.get("/servers/999/history/").status_code == 404


def test_a_month_takes_as_many_queries_as_an_hour(browser: Client, gpu: Server) -> None:
    counts = []
    for span in ("hour", "month"):
        with CaptureQueriesContext(connection) as queries:
            browser.get(f"/servers/{gpu.pk}/history/?span={span}")
        counts.append(len(queries))
    assert counts[0] == counts[1]
