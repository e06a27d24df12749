"""What only one of them has: a shared cache, loading by hand, aliases, limits, fallbacks."""

import asyncio
import time

import pytest

from tests.backends.backend import Backend
from tests.backends.stacks import litellm, llama_swaps, ollas, routers
from tests.backends.stacks.litellm import LIMITED_RPM
from tests.backends.workbench import Workbench
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def on(stack: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("backend", [stack], indirect=True)


@on("-np 2 --kv-unified")
async def test_a_shared_cache_is_noticed_when_answers_outgrow_it(
    backend: Backend, workbench: Workbench
) -> None:
    await workbench.add(backend)
    with backend.slowed():  # neither ends before the other has begun
        conversations = [
            await workbench.start(backend.chat, "x" * 3_000, max_tokens=2_500) for _ in range(2)
        ]
    answers = await asyncio.gather(*(workbench.finished(*one) for one in conversations))
    # Together 11,000 tokens, of 8,192. Nobody loses an answer: it is repeated.
    assert [answer.error for answer in answers] == ["", ""]
    slots = (await workbench.look())["slots"]
    assert (slots["unified"], slots["pool"]) == (True, 8192)
    assert slots["unified_source"] == "observed: requests exceeded the shared context"


@on(routers.FOLDER)
async def test_a_router_s_models_are_loaded_and_unloaded_by_hand(
    backend: Backend, workbench: Workbench
) -> None:
    known = await workbench.add(backend)
    names = {model["id"] for model in known["models"]}
    assert {"alpha", "beta", "thinking", "seeing", "broken"} <= names
    path = f"/servers/{workbench.server}/models"

    async def until_state(model: str, *states: str) -> dict[str, object]:
        found: dict[str, object] = {}

        async def is_so() -> bool:
            found.update(await workbench.model(model))
            return found["state"] in states

        await until(is_so, what=f"{states[0]} {model}")
        return found

    for model in ("seeing", "thinking"):
        await workbench.call("post", f"{path}/load", {"model": model})
        await workbench.work_actions()
    seeing = await until_state("seeing", "loaded")
    assert (seeing["vision"], seeing["reasoning"]) == (True, False)
    thinking = await until_state("thinking", "loaded")
    assert (thinking["vision"], thinking["reasoning"]) == (False, True)
    await workbench.call("post", f"{path}/load", {"model": "broken"})
    await workbench.work_actions()
    broken = await until_state("broken", "failed")
    assert "exit code" in str(broken["error"])
    await workbench.call("post", f"{path}/unload", {"model": "seeing"})
    await workbench.work_actions()
    seeing = await until_state("seeing", "unloaded")
    # What was known of it stays known.
    assert (seeing["vision"], seeing["slots"]) == (True, 4)


@on(llama_swaps.GROUP)
async def test_an_alias_of_llama_swap_is_its_model(backend: Backend, workbench: Workbench) -> None:
    await workbench.add(backend)
    answer = await workbench.ask("first")
    assert answer.body["status"] == "complete", answer.sentence


@on(litellm.NAME)
async def test_litellm_falls_back_without_anybody_noticing(
    backend: Backend, workbench: Workbench
) -> None:
    await workbench.add(backend)
    answer = await workbench.ask("fragile")
    assert answer.body["status"] == "complete", answer.sentence


@on(litellm.NAME)
async def test_a_limit_per_minute_is_waited_for_and_not_hammered(
    backend: Backend, workbench: Workbench
) -> None:
    assert backend.relay is not None
    await workbench.add(backend, url=backend.counted_url)
    counts = backend.relay.forget()
    job = await workbench.job("limited", LIMITED_RPM + 4)
    async with workbench.pumping():
        slowed = await workbench.until_job(job, lambda job: "limit" in job["reason"])
        began, asked = time.monotonic(), len(counts.asked)
        assert slowed["counts"]["failed"] == 0
        # Refused once or twice, then left alone: it names no time, so the pauses grow. Meanwhile
        # a minute may begin.
        await until(lambda: time.monotonic() - began > 3)
        assert len(counts.asked) - asked <= 3 + LIMITED_RPM
        await workbench.call("post", f"/jobs/{job}/cancel", {})


@on(ollas.NAME)
async def test_olla_s_answers_come_from_both_servers(
    backend: Backend, workbench: Workbench
) -> None:
    await workbench.add(backend)
    before = [one.get("/slots") for one in backend.serving]
    tasks = [sum(slot.get("id_task", 0) for slot in slots) for slots in before]
    job = await workbench.job(backend.chat, 24)
    async with workbench.pumping():
        await workbench.until_done(job)
    after = [one.get("/slots") for one in backend.serving]
    assert all(
        sum(slot.get("id_task", 0) for slot in slots) > task
        for slots, task in zip(after, tasks, strict=True)
    )
