"""A head start of the event loop: its thread waits for the end, and never for ever."""

import asyncio

import pytest

from apps.runtime.threads import head_start
from apps.runtime.threads.head_start import HeadStart


async def test_the_thread_goes_on_when_the_loop_has_done_its_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(head_start, "SECONDS", 60)
    started, order = HeadStart(), list[str]()

    def work() -> None:
        started.wait()
        order.append("thread")

    working = asyncio.create_task(asyncio.to_thread(work))
    order.append("loop")
    started.end()
    await working
    assert order == ["loop", "thread"]


def test_the_thread_goes_on_where_the_end_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_start, "SECONDS", 0.001)
    HeadStart().wait()


def test_the_end_may_come_before_the_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_start, "SECONDS", 60)
    started = HeadStart()
    started.end()
    started.end()
    started.wait()
