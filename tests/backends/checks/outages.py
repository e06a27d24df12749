"""A server that is killed and comes back, in the middle of a chat and of a job."""

import asyncio

import pytest

from tests.backends.backend import Backend
from tests.backends.workbench import Workbench

ROWS = 40
LONG = 3_000  # tokens


async def gone_and_back_for_a_person(backend: Backend, workbench: Workbench) -> None:
    if backend.victim is None or not backend.chat:
        pytest.skip("no chat model" if not backend.chat else "nothing can be killed")
    await workbench.add(backend)
    assert (await workbench.ask(backend.chat)).body["status"] == "complete"
    await asyncio.to_thread(backend.victim.kill)
    try:
        await workbench.look()
        answer = await workbench.ask(backend.chat)
        assert answer.body["status"] == "failed"
        assert answer.error == backend.gone_code, answer.sentence
        assert "running" in answer.sentence
    finally:
        await asyncio.to_thread(backend.victim.start)
    await workbench.look()
    answer = await workbench.ask(backend.chat)
    assert answer.body["status"] == "complete", answer.sentence


async def killed_in_the_middle_of_an_answer(backend: Backend, workbench: Workbench) -> None:
    if backend.victim is None or not backend.chat:
        pytest.skip("no chat model" if not backend.chat else "nothing can be killed")
    await workbench.add(backend)
    with backend.slowed():
        conversation, answer = await workbench.start(backend.chat, max_tokens=LONG)
        await workbench.until_token(answer)
        await asyncio.to_thread(backend.victim.kill)
    try:
        ended = await workbench.finished(conversation, answer)
        # What had arrived is kept, and nothing pretends to be a whole answer.
        assert (ended.body["status"], ended.error) == ("failed", backend.cut_code), ended.sentence
        assert ended.body["content"]
    finally:
        await asyncio.to_thread(backend.victim.start)
    await workbench.look()
    again = await workbench.ask(backend.chat, conversation=conversation)
    assert again.body["status"] == "complete", again.sentence


async def killed_in_the_middle_of_a_job(backend: Backend, workbench: Workbench) -> None:
    if backend.victim is None or not backend.chat:
        pytest.skip("no chat model" if not backend.chat else "nothing can be killed")
    await workbench.add(backend)
    job = await workbench.job(backend.chat, ROWS)
    async with workbench.pumping():
        with backend.slowed():
            await workbench.until_job(job, lambda job: job["counts"]["accepted"] > 2)
            await asyncio.to_thread(backend.victim.kill)
        try:
            waiting = await workbench.until_job(job, lambda job: job["reason"])
            assert waiting["reason"].startswith("Waiting for the model server"), waiting
            assert waiting["counts"]["failed"] == 0
        finally:
            await asyncio.to_thread(backend.victim.start)
        done = await workbench.until_done(job)
    assert done["status"] == "done", done["reason"]
    assert done["counts"]["failed"] == 0, done["reasons"]
    rows = await workbench.rows(job)
    assert [row["index"] for row in rows] == list(range(ROWS))
