"""Every page of every room, with something on it: what axe-core finds, wide and narrow."""

import re
from collections.abc import Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, resolve
from playwright.sync_api import Browser, Page, expect

from tests.journeys.axe import violations
from tests.journeys.every_page.rooms import Rooms
from tests.screenshots.pages import ROUTES
from tests.stack import Stack

pytestmark = pytest.mark.timeout(600)

# They need a query or a key, or compare two things of which there is one.
REFUSED = (
    r"/chat/\d+/settings/prompt/compare/|/classify/\d+/runs/1/rows/|/classify/new/checks/"
    r"|/classify/worth/|/generate/\d+/near/|/metrics"
)


def addresses(real: Rooms) -> list[str]:
    """Of every pattern outside the APIs, with what there is; without it, of none."""
    found = []
    for path in patterns(get_resolver()):
        room = path.split("/")[1]

        def put(match: re.Match[str], room: str = room, path: str = path) -> str:
            before = path[: match.start()].strip("/")
            found = real.get((before, match[1]))
            return found or ("?" if match[1] == "pk" else real.get((room, match[1]), "?"))

        address = re.sub(r"<(?:\w+:)?(\w+)>", put, path)
        if "?" not in address and room not in {"api", "v1", "logout"}:
            found.append(address)
    return sorted(found)


def patterns(resolver: URLResolver, prefix: str = "/") -> Iterator[str]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, path)
        elif isinstance(entry, URLPattern):
            yield path


# What answers with none of these to a GET is broken, and would never be looked at.
USUAL = {200, 204, 286, 301, 302, 303, 405}  # 286 ends the polls of htmx


def is_a_page(page: Page, address: str) -> bool:
    answer = page.request.get(address, max_redirects=0)
    html = answer.headers.get("content-type", "").startswith("text/html")
    refused = answer.status not in USUAL and not re.fullmatch(REFUSED, address)
    assert not refused, f"{address}: {answer.status}"
    return answer.status == 200 and html and "<html" in answer.text()


def login_page(stack: Stack, browser: Browser) -> list[str]:
    """The one page that those see who are not logged in."""
    page = browser.new_page(base_url=stack.url, reduced_motion="reduce")
    page.goto("/login/")
    said = violations(page, "/login/")
    page.context.close()
    return said


def test_every_page_passes_axe_wide_and_narrow_in_light_and_dark(
    page: Page, rooms: Rooms, stack: Stack, chromium: Browser
) -> None:
    real = rooms
    pages = [address for address in addresses(real) if is_a_page(page, address)]
    unlisted = {resolve(address).route for address in pages} - ROUTES
    assert not unlisted, "tests/screenshots/pages.py lists every page"
    said = login_page(stack, chromium)
    for address in pages:
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.goto(address)
        said += violations(page, address)
    page.goto(f"/chat/{real['chat', 'pk']}/")
    page.keyboard.press("Alt+m")
    expect(page.get_by_label("Temperature")).to_be_visible()
    open_all = "all => all.forEach((one) => { one.open = true; })"
    page.locator("#settings details").evaluate_all(open_all)
    said += violations(page, "the panel")
    assert not said, "\n".join(said)
