"""A person at a browser, on the whole workbench as `make run` starts it."""

import os
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from bench.stream import paced_server
from tests.stack import Stack

# The machine may be busy: what a person waits for has this long, in milliseconds.
PATIENCE = 60_000


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


USE = """
from apps.llm.models import DefaultServer, Server, Use
server = Server.objects.filter(name={name!r}).first() or Server(name={name!r}, base_url={url!r})
server.save()
DefaultServer.objects.filter(use=Use.CHAT).update(server=server, model={model!r})
"""


REMOVE = """
Server.objects.filter(name="Slow").delete()
"""


@pytest.fixture(scope="module")
def slow_model(stack: Stack) -> Iterator[None]:
    """Chat is answered by a stand-in that counts to 2,000, a number each 20 ms.

    The demo model has answered before a person could press Stop.
    """
    with paced_server() as url:
        stack.manage("shell", "-c", USE.format(name="Slow", url=url, model="paced"))
        yield
        stack.manage("shell", "-c", USE.format(name="Chat server", url="", model="") + REMOVE)


def arrive(page: Page, address: str) -> None:
    """Waits for the page that a link or a form leads to, its scripts included.

    What it shows can be seen before that, but keys and what one types do nothing yet.
    """
    page.wait_for_url(re.compile(address))


def is_problem(line: ConsoleMessage) -> bool:
    """Chromium also calls it an error when a form is refused: what is checked as one types."""
    return line.type == "error" and "status of 422" not in line.text


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
    page.on("console", lambda line: problems.append(line.text) if is_problem(line) else None)
    yield page
    context.close()
    assert problems == []
