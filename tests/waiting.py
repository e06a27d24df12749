"""Waits for states. Tests never sleep for a time in which something ought to have happened."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

WITHIN = 60.0  # seconds, for what takes milliseconds on a machine that has nothing else to do
POLL_SECONDS = 0.02


def wait_until(
    condition: Callable[[], object], *, within: float = WITHIN, what: str = "the state"
) -> float:
    """Return the seconds until `condition` was true.

    Raises:
        AssertionError: It was not within `within` seconds.
    """
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within, f"{what} did not come within {within:.0f} s"
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


def wait_in_page(page: "Page", condition: Callable[[], object], *, within: float = WITHIN) -> None:
    """Wait as `wait_until`, while the page's events go on: Playwright hears of them in its calls.

    Raises:
        AssertionError: It was not within `within` seconds.
    """
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within, f"the state did not come within {within:.0f} s"
        page.wait_for_timeout(POLL_SECONDS * 1000)


async def until(
    condition: Callable[[], object] | Callable[[], Awaitable[object]],
    *,
    within: float = WITHIN,
    every: float = POLL_SECONDS,
    what: str = "the state",
) -> float:
    """Return the seconds until `condition` was true, as `wait_until`, beside other tasks.

    Raises:
        AssertionError: It was not within `within` seconds.
    """
    began = time.monotonic()
    while True:
        found = condition()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return time.monotonic() - began
        assert time.monotonic() - began < within, f"{what} did not come within {within:.0f} s"
        await asyncio.sleep(every)
