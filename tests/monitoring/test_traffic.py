"""What samples say of each model, for the doctor of servers."""

import time

import pytest

from apps.llm.permits import PROMPT_TOKEN_BOUNDS
from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement
from apps.servers.models import Server
from apps.tuning.hooks import (
    Cuts,
    Drafts,
    Prompts,
    Speeds,
    Swaps,
    Traffic,
    read_traffic,
    traffic_of,
)


@pytest.fixture
def gpu(db: None) -> Server:
    return Server.objects.create(name="GPU", base_url="http://gpu/v1")


def test_traffic_of_a_model_is_that_of_the_last_day(gpu: Server) -> None:
    now = time.time()
    for moment, ended in ((now - 2 * store.DAY, 100), (now - 7200, 6), (now, 3)):
        drafts = {"drafted": 3 * ended, "draft_accepted": ended, "drafting": 2 * ended}
        cuts = {"cut_off": ended, "cut_off_cs": 3000 * ended, "cut_off_cs2": 9_000_000 * ended}
        one = Measurement(
            ended=ended, only_thought=ended // 3, completion=7 * ended, **drafts, **cuts
        )
        store.add(gpu, {"": one, "qwen": one}, moment)
    traffic = Traffic(
        ended=9,
        only_thought=3,
        written=63,
        drafts=Drafts(27, 9, 18),
        cuts=Cuts(9, 27_000, 81_000_000),
    )
    assert read_traffic([gpu.pk]) == {(gpu.pk, "qwen"): traffic}
    assert read_traffic([gpu.pk + 1]) == {}


def test_gpus_hold_what_they_held_in_the_last_minutes(gpu: Server) -> None:
    now = time.time()
    for moment, memory in ((now - 1200, 9000), (now - 60, 700), (now, 500)):
        store.add(gpu, {"": Measurement(gpu_readings=2, gpu_memory=2 * memory)}, moment)
    store.add(gpu, {"qwen": Measurement(ended=1)}, now)
    recorded = read_traffic([gpu.pk])
    assert traffic_of(recorded, gpu.pk, "qwen") == Traffic(ended=1, gpu_memory=700)
    assert traffic_of(recorded, gpu.pk, "never asked") == Traffic(gpu_memory=700)


def test_speeds_are_of_the_last_day_and_of_the_week_before(gpu: Server) -> None:
    now = time.time()
    times = (*((now - hours * store.HOUR, 50) for hours in (30, 60)), (now, 100))
    for moment, milliseconds in times:
        one = Measurement(timed=1000, timed_ms=1000 * milliseconds, readings=4, busy=8)
        store.add(gpu, {"qwen": one}, moment)
    store.add(gpu, {"qwen": Measurement(timed=199, timed_ms=10)}, now - 100 * store.HOUR)
    speeds = traffic_of(read_traffic([gpu.pk]), gpu.pk, "qwen").speeds
    assert speeds == Speeds((10.0,), (20.0, 20.0), 2.0, 2.0)


def test_loads_are_those_of_the_server_with_what_they_cost(gpu: Server) -> None:
    now = time.time() // 300 * 300
    for age, loads, first_ms in ((900, 0, 400), (600, 3, 9000), (300, 5, 11_000), (86_000, 4, 0)):
        slow = Measurement(loads=loads, requests=2, first_ms=2 * first_ms, first_tokens=[2])
        asked = {"qwen": Measurement(requests=1), "gemma": Measurement(requests=2)}
        store.add(gpu, {"": slow, **asked}, now - age)
    quiet = Server.objects.create(name="Quiet", base_url="http://quiet/v1")
    store.add(quiet, {"": Measurement(requests=9)}, now)
    recorded = read_traffic([gpu.pk, quiet.pk])
    assert traffic_of(recorded, quiet.pk, "").swaps == Swaps()
    swaps = Swaps(
        loads=12,
        most=8,
        requests=6,
        seconds=pytest.approx(20 / 3),
        usual_seconds=0.4,
        models=("gemma", "qwen"),
    )
    assert traffic_of(recorded, gpu.pk, "qwen").swaps == swaps
    assert traffic_of(recorded, gpu.pk, "").swaps == swaps


def test_prompts_have_their_sizes_and_what_did_not_fit(gpu: Server) -> None:
    now = time.time()
    sizes = [0] * PROMPT_TOKEN_BOUNDS.index(4096) + [18, 2]
    one = Measurement(prompt_sizes=sizes, prompt_cut=3, too_long=1)
    for moment in (now, now - store.HOUR):
        store.add(gpu, {"qwen": one}, moment)
    store.add(gpu, {"qwen": Measurement(requests=5)}, now - 2 * store.HOUR)
    larger = PROMPT_TOKEN_BOUNDS[PROMPT_TOKEN_BOUNDS.index(4096) + 1]
    found = traffic_of(read_traffic([gpu.pk]), gpu.pk, "qwen").prompts
    assert found == Prompts(
        requests=40, usual=(4096 + larger + 1) // 2, largest=larger, cut=6, refused=2
    )
