"""What a plan chooses, why, and what it warns of."""

from dataclasses import replace
from typing import Any

import pytest

from apps.tuning.errors import PlanError
from apps.tuning.planner.flag_warnings import warnings_for
from apps.tuning.planner.flags import Files, Flag, flags_of
from apps.tuning.planner.hardware import GIB, find_hardware
from apps.tuning.planner.kv_cache import KvCache
from apps.tuning.planner.plan import PlanRequest, make_plan
from apps.tuning.planner.uses import NEEDS, Use, find_use
from tests.tuning.planner.plans import plan_of
from tests.tuning.planner.test_memory import LLAMA

GPU_16 = find_hardware("RTX 4060 Ti")
KEY = Flag("--api-key-file", "keys", "")
METRICS = Flag("--metrics", None, "")


@pytest.mark.parametrize("use", Use)
def test_every_use_fits_an_8b_model_on_24_gib_without_a_warning_but_the_key(use: Use) -> None:
    plan = plan_of(LLAMA, use, hardware=find_hardware("RTX 4090"))
    flags = flags_of(plan, Files("/models/llama.gguf"))
    assert plan.fits
    assert plan.slot_context == NEEDS[use].context
    assert all(flag.why.endswith(".") for flag in flags)
    [warning] = warnings_for(flags, plan.cache, LLAMA, use)
    assert warning.startswith("No API key")


def test_a_context_that_does_not_fit_in_f16_is_kept_in_q8_0() -> None:
    plan = plan_of(LLAMA, Use.AGENTS, hardware=GPU_16)
    assert (plan.cache.key_type, plan.slot_context) == ("q8_0", 65_536)
    assert plan.fits


def test_the_context_shrinks_to_what_fits() -> None:
    plan = plan_of(LLAMA, Use.MIX, hardware=find_hardware("RTX 3070", memory_gib=6.5))
    assert plan.fits
    assert 1024 <= plan.slot_context < 8192


def test_what_does_not_fit_says_how_many_layers_do() -> None:
    large = replace(LLAMA, weight_bytes=40 * GIB)
    plan = plan_of(large, hardware=GPU_16)
    assert not plan.fits
    assert 0 < plan.layers_that_fit < 32
    assert plan.roof_empty is None


def test_given_slots_and_context_are_kept() -> None:
    plan = plan_of(LLAMA, hardware=GPU_16, slots=3, context=5000)
    assert (plan.cache.slots, plan.slot_context) == (3, 5000)


@pytest.mark.parametrize("given", [{"slots": 0}, {"slots": 257}, {"context": 10}])
def test_impossible_numbers_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="between"):
        PlanRequest(LLAMA, GPU_16, **given)


def test_an_unknown_type_and_use_are_refused() -> None:
    with pytest.raises(PlanError, match="no type of the KV cache"):
        make_plan(PlanRequest(LLAMA, GPU_16, cache_type="q9"))
    with pytest.raises(PlanError, match="chat, classification"):
        find_use("poetry")


@pytest.mark.parametrize("path", ["", "a\nb.gguf", "${HOME}/a.gguf"])
def test_a_path_that_breaks_a_configuration_is_refused(path: str) -> None:
    with pytest.raises(PlanError, match="rename the file"):
        Files(path)


@pytest.mark.parametrize(
    ("cache", "use", "said"),
    [
        (KvCache(2048, slots=8), Use.CHAT, "Only 256 tokens a slot"),
        (KvCache(262_144), Use.CHAT, "trained for 131,072"),
        (KvCache(8192, key_type="q4_0"), Use.AGENTS, "Tool calls"),
        (KvCache(8192, slots=4, unified=True), Use.GENERATION, "unified pool"),
        (KvCache(8192), Use.EMBEDDINGS, "micro-batch"),
        (KvCache(8192), Use.DECISIONS, "whole prompt"),
    ],
)
def test_warnings_about_the_cache(cache: KvCache, use: Use, said: str) -> None:
    [warning] = warnings_for([KEY, METRICS], cache, LLAMA, use)
    assert said in warning


def test_a_short_context_is_no_risk_where_the_model_has_no_longer_one() -> None:
    short = replace(LLAMA, context=512)
    assert warnings_for([KEY, METRICS], KvCache(2048, slots=4), short, Use.EMBEDDINGS) == ()


def test_warnings_about_flags() -> None:
    draft = Flag("--model-draft", "small.gguf", "")
    found = warnings_for([draft], KvCache(32_768, slots=8), LLAMA, Use.GENERATION)
    assert [text.split(" ")[0:2] for text in found] == [
        ["Speculative", "decoding"],
        ["No", "--metrics:"],
        ["No", "API"],
    ]
