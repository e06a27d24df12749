"""Servers with several models: changing between them, and who decides which one is loaded."""

import pytest
from django.test import override_settings

from tests.backends.backend import Backend
from tests.backends.workbench import Workbench

LOADING_KINDS = {"router", "llama-swap"}


async def switch_of_models(backend: Backend, workbench: Workbench) -> None:
    if backend.other is None:
        pytest.skip("one model")
    await workbench.add(backend)
    await workbench.ask(backend.chat)
    for model, before in ((backend.other, backend.chat), (backend.chat, backend.other)):
        answer = await workbench.ask(model)
        assert answer.body["status"] == "complete", answer.sentence
        assert answer.body["model"] == model
        if backend.one_at_a_time:
            states = [(await workbench.model(name))["state"] for name in (model, before)]
            assert states in (["loaded", "unloaded"], ["unknown", "unknown"])
            assert ("loading" in answer.names) is ("loaded" in states)


async def a_person_before_a_job(backend: Backend, workbench: Workbench) -> None:
    if backend.other is None or not backend.one_at_a_time:
        pytest.skip("all its models fit into memory")
    assert backend.relay is not None
    await workbench.add(backend, url=backend.counted_url)
    await workbench.ask(backend.chat)
    counts = backend.relay.forget()
    job = await workbench.job(backend.other, 6)
    async with workbench.pumping():
        await workbench.until_job(job, lambda job: f"{backend.chat} is in use" in job["reason"])
        for _ in range(3):
            answer = await workbench.ask(backend.chat)
            assert answer.body["status"] == "complete", answer.sentence
            assert "loading" not in answer.names
        # Rows wait for as long as WORKBENCH_KEEP_MODEL says, five minutes: not one swap meanwhile.
        assert set(counts.asked) == {backend.chat}
        with override_settings(KEEP_MODEL_SECONDS=0):  # they are over
            await workbench.until_done(job)
    assert set(counts.asked[counts.asked.index(backend.other) :]) == {backend.other}
    assert counts.switches == 1
