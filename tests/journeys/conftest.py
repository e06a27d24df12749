"""A person at a browser, on the whole workbench as `make run` starts it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from bench.chat.stream import paced_server
from tests.stack import Stack

# The machine may be busy: what a person waits for has this long, in milliseconds.
PATIENCE = 60_000

Login = dict[str, object]


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
def logged_in(stack: Stack, chromium: Browser) -> Login:
    """The session of the person who opened the printed link."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(stack.login_url)
    arrive(page, r"//[^/]+/$")  # the page of the link sends its form by itself
    state = context.storage_state()
    context.close()
    return dict(state)


@pytest.fixture(scope="package")
def person(stack: Stack, chromium: Browser, logged_in: Login) -> BrowserContext:
    """The browser of the person who opened the printed link, for what needs no page."""
    return chromium.new_context(
        base_url=stack.url,
        storage_state=logged_in,  # type: ignore[arg-type]
    )


def in_browser(context: BrowserContext, method: str, path: str, body: Any = None) -> Any:
    """A route of the API, asked with the login of the browser."""
    token = next(c["value"] for c in context.cookies() if c["name"] == "workbench_csrf")
    headers = {"X-CSRFToken": token}
    answer = context.request.fetch(path, method=method, data=body, headers=headers)
    assert answer.ok, answer.text()
    return answer.json() if answer.status != 204 else None


@contextmanager
def answered_by(person: BrowserContext, name: str, url: str, model: str) -> Iterator[None]:
    """Another model server answers in Chat."""
    items = in_browser(person, "get", "/api/v1/servers")["items"]
    own = next(item["id"] for item in items if item["name"] == "Chat server")
    added = {"name": name, "base_url": url}
    other = in_browser(person, "post", "/api/v1/servers", added)["id"]
    use = f"/api/v1/servers/{other}/defaults"
    in_browser(person, "put", use, {"use": "chat", "model": model})
    yield
    in_browser(person, "put", f"/api/v1/servers/{own}/defaults", {"use": "chat"})
    in_browser(person, "delete", f"/api/v1/servers/{other}")


@pytest.fixture(scope="module")
def slow_model(person: BrowserContext) -> Iterator[None]:
    """Chat is answered by a stand-in that counts to 2,000, a number each 20 ms.

    The demo model has answered before a person could press Stop.
    """
    with paced_server() as url, answered_by(person, "Slow", url, "paced"):
        yield


def arrive(page: Page, address: str) -> None:
    """Waits for the page that a link or a form leads to, its scripts included.

    What it shows can be seen before that, but keys and what one types do nothing yet.
    """
    page.wait_for_url(re.compile(address))


def is_problem(line: ConsoleMessage) -> bool:
    """Chromium also calls it an error when a form is refused: what is checked as one types."""
    refused = ("status of 422", "status of 409")
    return line.type == "error" and not any(words in line.text for words in refused)


@contextmanager
def tab(stack: Stack, chromium: Browser, logged_in: Login) -> Iterator[Page]:
    """A new tab. A script that fails or breaks the security policy fails whoever opened it."""
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


@pytest.fixture
def page(stack: Stack, chromium: Browser, logged_in: Login) -> Iterator[Page]:
    with tab(stack, chromium, logged_in) as page:
        yield page
