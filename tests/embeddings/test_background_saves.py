"""Saves in the background: they end before the loop does, and an error is logged."""

import asyncio
import contextvars
import logging

import pytest

from apps.embeddings import background_saves

REQUEST = contextvars.ContextVar("REQUEST", default="")


async def test_waiting_returns_when_every_save_has_ended() -> None:
    ended: list[int] = []

    async def save(number: int) -> None:
        await asyncio.to_thread(ended.append, number)
        if number < 3:
            background_saves.start(save(number + 1))  # begun while the others are waited for

    background_saves.start(save(1))
    await background_saves.wait_until_saved()
    assert ended == [1, 2, 3]


async def test_waiting_for_nothing_returns_at_once() -> None:
    await background_saves.wait_until_saved()


async def test_an_error_is_logged_and_does_not_end_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = asyncio.Event()

    async def fail() -> None:
        raise OSError("disk full")

    async def succeed() -> None:
        ended.set()

    with caplog.at_level(logging.ERROR):
        background_saves.start(fail())
        background_saves.start(succeed())
        await background_saves.wait_until_saved()
    assert ended.is_set()
    (record,) = caplog.records
    assert record.message == "New vectors were not saved."
    assert "disk full" in str(record.exc_info)


async def test_a_save_does_not_run_in_the_context_of_the_request() -> None:
    seen: list[str] = []

    async def save() -> None:
        seen.append(REQUEST.get())

    REQUEST.set("a request")
    background_saves.start(save())
    await background_saves.wait_until_saved()
    assert seen == [""]
