"""Several models at once: what each gets, what is written for them, and the presets."""

from typing import Any

import pytest
import yaml

from apps.tuning.errors import PlanError
from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.importing.imported import import_servers
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import find_hardware, unnamed_hardware
from apps.tuning.planner.stack.presets import PRESETS, plan_preset
from apps.tuning.planner.stack.stack_plan import (
    STACK_FORMATS,
    Member,
    StackPlan,
    plan_stack,
    stack_warnings,
    write_stack,
)
from apps.tuning.planner.uses import NEEDS, Use
from tests.tuning.planner.plans import plan_of
from tests.tuning.planner.test_memory import LLAMA


def member(name: str, use: Use = Use.CHAT) -> Member:
    return Member(LLAMA, use, Files(name))


def stack_on(gib: float) -> StackPlan:
    members = [member("a.gguf"), member("b.gguf", Use.EMBEDDINGS)]
    return plan_stack(members, unnamed_hardware(gib))


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_fits_with_the_contexts_of_its_uses(name: str) -> None:
    stack = plan_preset(name)
    assert stack.fits
    assert [found.use for found in stack.members][:2] == [Use.CHAT, Use.EMBEDDINGS]
    for plan in stack.plans:
        assert plan.slot_context == NEEDS[plan.request.use].context
    [warning] = stack_warnings(stack)
    assert warning.startswith("No API key")


def test_16_gb_hold_chat_embeddings_and_decisions() -> None:
    stack = plan_preset("16 GB")
    assert [found.use for found in stack.members] == [Use.CHAT, Use.EMBEDDINGS, Use.DECISIONS]
    assert stack.members[0].shape.name == "Qwen3-8B-Q4_K_M"


def test_a_larger_memory_never_gets_a_smaller_chat_model() -> None:
    sizes = [plan_preset(f"{gb} GB").members[0].shape.weight_bytes for gb in (8, 12, 16, 24, 32)]
    assert sizes == sorted(sizes, key=lambda size: size or 0)


def test_an_unknown_preset_is_refused_with_the_choice() -> None:
    with pytest.raises(PlanError, match="Choose from: 8 GB, 12 GB"):
        plan_preset("7 GB")


def test_each_model_counts_its_own_server_and_the_first_takes_what_is_left() -> None:
    alone = plan_of(LLAMA, hardware=unnamed_hardware(24))
    both = stack_on(24)
    assert both.fits
    assert both.plans[0].needed_bytes == alone.needed_bytes
    tight = stack_on(13.5)
    assert tight.fits
    assert 1024 <= tight.plans[0].slot_context < alone.slot_context
    assert tight.plans[1].cache == both.plans[1].cache
    assert all(part.name != "Other models" for plan in tight.plans for part in plan.parts)


def test_what_does_not_fit_together_is_warned_of_and_may_be_swapped() -> None:
    stack = stack_on(6)
    assert not stack.fits
    assert "let llama-swap swap them" in stack_warnings(stack)[-1]
    assert "groups" not in yaml.safe_load(write_stack("llama-swap", stack))


def test_llama_swap_keeps_what_fits_together_and_knows_each_by_its_use() -> None:
    config = yaml.safe_load(write_stack("llama-swap", stack_on(24)))
    assert config["groups"]["together"] == {"swap": False, "members": ["a", "b"]}
    assert [model["aliases"] for model in config["models"].values()] == [["chat"], ["embeddings"]]
    twice = plan_stack([member("a.gguf"), member("b.gguf")], find_hardware("RTX 4090"))
    models = yaml.safe_load(write_stack("llama-swap", twice))["models"]
    assert all("aliases" not in model for model in models.values())


@pytest.mark.parametrize("name", ["llama-swap", "router"])
def test_a_written_stack_means_itself(name: str) -> None:
    stack = plan_preset("16 GB")
    found = import_servers(write_stack(name, stack), shipped_table())
    assert [server.cache for server in found] == [plan.cache for plan in stack.plans]
    assert [server.problems for server in found] == [()] * 3


def test_a_stack_is_written_for_every_program_but_compose() -> None:
    texts = {name: write_stack(name, stack_on(24)) for name in STACK_FORMATS}
    assert "--port 8080 " in texts["command"]
    assert "--port 8081 " in texts["command"]
    assert len(yaml.safe_load(texts["litellm"])["model_list"]) == 2
    assert yaml.safe_load(texts["olla"])["discovery"]["static"]["endpoints"]
    with pytest.raises(PlanError, match="command, llama-swap, router"):
        write_stack("compose", stack_on(24))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([], "1 to 16 models"),
        ([member("x/a.gguf"), member("y/a.gguf", Use.EMBEDDINGS)], "same file name"),
    ],
)
def test_an_impossible_stack_is_refused(members: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        plan_stack(members, unnamed_hardware(24))
