"""How long prompts were: by server and model, of the last day alone."""

import pytest

from apps.llm.permits import PROMPT_TOKEN_BOUNDS
from apps.monitoring.history import store
from apps.monitoring.history.measurement import SIZES, Measurement
from apps.monitoring.history.prompts import read_prompts
from apps.servers.models import Server

NOW = 1_800_000_000


@pytest.fixture
def gpu(db: None) -> Server:
    return Server.objects.create(name="GPU", base_url="http://gpu/v1")


def sizes(**counts: int) -> list[int]:
    """Counts by the upper bound of their bucket, in tokens: `sizes(_64=3)`."""
    found = [0] * SIZES
    for bound, count in counts.items():
        found[PROMPT_TOKEN_BOUNDS.index(int(bound[1:]))] = count
    return found


def test_prompts_of_two_models_are_not_added_up(gpu: Server) -> None:
    short, long = Measurement(prompt_sizes=sizes(_64=3)), Measurement(prompt_sizes=sizes(_512=4))
    store.add(gpu, {"": short + long, "small": short, "large": long}, NOW)
    found = read_prompts([gpu.pk], NOW)
    assert {model: each.requests for (_, model), each in found.items()} == {"small": 3, "large": 4}
    assert found[gpu.pk, "small"].largest == 64
    assert found[gpu.pk, "large"].largest == 512


def test_prompts_of_another_server_and_of_earlier_days_do_not_count(gpu: Server) -> None:
    other = Server.objects.create(name="Other", base_url="http://other/v1")
    one = Measurement(prompt_sizes=sizes(_64=1), prompt_cut=1)
    store.add(gpu, {"qwen": one}, NOW - 2 * store.DAY)
    store.add(other, {"qwen": one}, NOW)
    assert read_prompts([gpu.pk], NOW) == {}


def test_a_prompt_beyond_the_last_bound_is_said_to_have_that_bound(gpu: Server) -> None:
    beyond = [0] * (SIZES - 1) + [1]
    store.add(gpu, {"qwen": Measurement(prompt_sizes=beyond)}, NOW)
    prompts = read_prompts([gpu.pk], NOW)[gpu.pk, "qwen"]
    assert (prompts.usual, prompts.largest) == (PROMPT_TOKEN_BOUNDS[-1],) * 2
