"""Waits for states. Tests never sleep for a time in which something ought to have happened."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

WITHIN = 150.0  # seconds, for what takes milliseconds on a machine that has nothing else to do
POLL_SECONDS = 0.02
PATIENCE = 120  # seconds
# What is given up after a few seconds, as a machine that does much else exceeds while all is well:
# the modules, and the names of their limits.
LIMITS = {
    "apps.chat.answering.runner": ("STOP_SECONDS",),
    "apps.chat.attachments.image_tokens": ("COUNT_SECONDS",),
    "apps.chat.attachments.receive": ("COUNT_SECONDS",),
    "apps.chat.knowledge.search": ("SECONDS",),
    "apps.chat.tools.fetching": ("CONNECT_SECONDS", "SECONDS"),
    "apps.classifiers.prediction.label_guesses": ("PATIENCE_S",),
    "apps.core.sandbox": ("PATIENCE_SECONDS",),
    "apps.llm.permits.acquire": ("REDIS_SECONDS",),
    "apps.llm.timeouts": ("CONNECT_SECONDS", "NATIVE_SECONDS"),
    "apps.mcp.connection": ("CONNECT_SECONDS",),
    "apps.mcp.discovery": ("REFRESH_SECONDS",),
    "apps.runtime.redis": ("COMMAND_SECONDS",),
    "apps.servers.pages.probe_result": ("SECONDS",),
    "apps.servers.probing.refresh": ("PROBE_SECONDS",),
    "apps.servers.probing.refresh_lock": ("LOCK_SECONDS",),
    "apps.servers.slot_files.prompts": ("RESTORE_SECONDS",),
    "apps.servers.slots.hold_slot": ("READ_SECONDS",),
}


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


def be_patient() -> None:
    """Let everything of this process wait longer, in all tests; those of a limit set their own."""
    for name, limits in LIMITS.items():
        module = import_module(name)
        for limit in limits:
            assert getattr(module, limit) < PATIENCE, f"{name}.{limit}"
            setattr(module, limit, PATIENCE)
