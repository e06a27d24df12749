"""Samples from counters to rows, and how long those stay."""

import pytest

from apps.llm.permits.keys import permit_key
from apps.monitoring.gpus.reading import GpuReading
from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement
from apps.monitoring.history.sampling import take_samples
from apps.monitoring.models import Sample
from apps.runtime.redis import sync_redis
from apps.servers.models import Kind, Server, State

DAY = 24 * 3600
NOON = 1_800_000_000 // DAY * DAY + DAY // 2


@pytest.fixture
def gpu(db: None) -> Server:
    facts = {"models": [{"id": "qwen", "aliases": ["small"]}]}
    return Server.objects.create(
        name="GPU", base_url="http://gpu/v1", parallel=4, state=State.READY, stored_facts=facts
    )


def count(server: Server, model: str, **amounts: int) -> None:
    for name, amount in amounts.items():
        sync_redis().hincrby(permit_key(server.pk, "totals"), f"{name}:{model}", amount)


def latest(server: Server, model: str = "", step: int = 30) -> Measurement:
    return Sample.objects.filter(server=server, model=model, step=step).latest("start").measurement


def test_a_sample_has_what_came_since_the_last_one(gpu: Server) -> None:
    count(gpu, "qwen", requests=5, prompt=500)
    take_samples(NOON)
    count(gpu, "qwen", requests=1, prompt=60)
    take_samples(NOON + 30)
    sample = latest(gpu)
    assert (sample.requests, sample.prompt_per_second, sample.slots) == (1, 2, 4)
    assert latest(gpu, "qwen").requests == 1


def test_a_sample_after_a_restart_of_redis_has_what_was_counted_since(gpu: Server) -> None:
    count(gpu, "qwen", requests=5)
    take_samples(NOON)
    sync_redis().flushall()
    count(gpu, "qwen", requests=2)
    take_samples(NOON + 30)
    assert latest(gpu).requests == 2


def test_an_alias_and_no_name_count_for_the_model_they_mean(gpu: Server) -> None:
    count(gpu, "small", requests=1)
    count(gpu, "", requests=1)
    take_samples(NOON)
    assert latest(gpu, "qwen").requests == latest(gpu).requests == 2
    assert store.models_of(gpu, since=NOON - DAY) == ["qwen"]


def test_a_sample_taken_twice_for_the_same_moment_counts_once(gpu: Server) -> None:
    count(gpu, "qwen", requests=1)
    take_samples(NOON)
    take_samples(NOON)
    assert latest(gpu).readings == 1


def test_a_server_that_does_not_answer_is_away(gpu: Server) -> None:
    Server.objects.update(state=State.UNREACHABLE)
    take_samples(NOON)
    assert latest(gpu).away == 1


def test_gpus_are_sampled_for_the_whole_server(gpu: Server) -> None:
    count(gpu, "qwen", requests=1)
    reading = GpuReading(memory_used=512, memory_total=1024, busy=0.5)
    take_samples(NOON, {gpu.pk: [reading, reading]})
    take_samples(NOON + 1)  # nobody reported them this time
    sample = latest(gpu)
    assert (sample.gpu_memory_gib, sample.gpu_busy_share, sample.gpu_watts) == (1, 0.5, None)
    assert latest(gpu, "qwen").gpu_memory_gib is None


def test_models_that_come_into_memory_are_counted(gpu: Server) -> None:
    def sample(second: int, *loaded: str) -> int:
        models = [
            {"id": name, "state": "loaded" if name in loaded else "unloaded"} for name in "abc"
        ]
        Server.objects.update(kind=Kind.LLAMA_SWAP, stored_facts={"models": models})
        take_samples(NOON + second)
        return latest(gpu).loads

    assert sample(0, "a") == 0  # it may have been there for days
    assert sample(30, "a") == 0
    assert sample(60, "b", "c") == 2
    assert sample(90) == 0
    assert sample(120, "b") == 1


def test_a_server_with_one_model_loads_none(gpu: Server) -> None:
    take_samples(NOON)
    take_samples(NOON + 30)
    assert latest(gpu).loads == 0


def test_more_samples_take_no_more_rows(gpu: Server) -> None:
    for second in range(30):
        store.add(gpu, {"": Measurement(readings=1, seconds=1, completion=10)}, NOON + second)
    assert Sample.objects.count() == len(store.RESOLUTIONS)
    assert latest(gpu) == Measurement(
        readings=30, seconds=30, completion=300, first_tokens=[], prompt_sizes=[]
    )


def test_fine_rows_go_and_coarse_ones_stay(gpu: Server) -> None:
    for moment in (NOON, NOON + DAY):
        store.add(gpu, {"": Measurement(readings=1)}, moment)
    store.delete_expired(NOON + DAY)
    kept = sorted(Sample.objects.filter(start__lte=NOON).values_list("step", flat=True))
    assert kept == [300, 3600]
    store.delete_expired(NOON + 33 * DAY)
    assert not Sample.objects.exists()


def test_reading_adds_rows_up_and_leaves_gaps(gpu: Server) -> None:
    for moment, tokens in ((NOON, 10), (NOON + 3600, 20), (NOON + 4 * 3600, 40)):
        store.add(gpu, {"": Measurement(readings=1, completion=tokens)}, moment)
    found = store.read(gpu, since=NOON, until=NOON + 6 * 3600, step=7200)
    assert [one and one.completion for one in found] == [30, None, 40]
