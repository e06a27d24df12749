"""A person at a browser, on the whole workbench as `make run` starts it."""

import os
import threading
from collections.abc import Iterator
from typing import Self

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.stack import Stack

# The machine may be busy: what a person waits for has this long, in milliseconds.
PATIENCE = 30_000


@pytest.fixture(scope="package")
def stack() -> Iterator[Stack]:
    with Stack() as stack:
        yield stack


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    # Package-wide and no longer: while Playwright runs, Django takes this thread for an event loop.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("WORKBENCH_CHROMIUM") or None,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def logged_in(stack: Stack, chromium: Browser) -> dict[str, object]:
    """The session of the person who opened the printed link."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(stack.login_url)
    state = context.storage_state()
    context.close()
    return dict(state)


class SlowModel:
    """Lets a model work a few milliseconds out of many, as slowly as a large one on a small GPU.

    The demo model has answered before a person could press Stop.
    """

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._over = threading.Event()
        self._held = threading.Event()
        self._thread = threading.Thread(target=self._hold_back)

    def hold(self) -> None:
        """Not a token more until `go_on`."""
        self._held.set()

    def go_on(self) -> None:
        self._held.clear()

    def _hold_back(self) -> None:
        while not self._over.wait(0.004):
            self._process.suspend()
            self._over.wait(0.2)
            while self._held.is_set() and not self._over.wait(0.02):
                pass
            self._process.resume()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


@pytest.fixture
def slow_model(stack: Stack) -> Iterator[SlowModel]:
    (process,) = stack.processes("--alias workbench-demo")
    with SlowModel(process) as model:
        yield model


@pytest.fixture
def page(stack: Stack, chromium: Browser, logged_in: dict[str, object]) -> Iterator[Page]:
    """A new tab. A script that fails or breaks the security policy fails the journey."""
    expect.set_options(timeout=PATIENCE)
    context = chromium.new_context(
        base_url=stack.url,
        storage_state=logged_in,  # type: ignore[arg-type]
        viewport={"width": 1280, "height": 800},
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    yield page
    context.close()
    assert problems == []
