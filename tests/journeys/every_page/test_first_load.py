"""What a first visit of a page loads."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.journeys.every_page.rooms import Rooms, import_chat

pytestmark = pytest.mark.timeout(400)

BUDGET_KIB = 200
# With something on them; the numbers are put in.
FIRST_PAGES = (
    "/chat/",
    "/datasets/",
    "/datasets/{datasets}/",
    "/classify/",
    "/classify/{classify}/",
    "/classify/{classify}/thresholds/",
    "/classify/{classify}/map/",
    "/generate/",
    "/generate/new/",
    "/generate/new/?recipe=chat",
    "/generate/{generate}/",
    "/servers/",
    "/servers/plan/",
    "/servers/connect/",
    "/servers/usage/",
    "/servers/{servers}/measure/",
    "/servers/{servers}/doctor/",
    "/tools/",
    "/settings/",
)


def first_load_kib(context: BrowserContext, url: str, ready: Callable[[Page], None]) -> float:
    """Return the KiB of script and style, compressed, that a first visit of a page loads."""
    page = context.new_page()
    session = context.new_cdp_session(page)
    kinds: dict[str, str] = {}
    sizes: dict[str, int] = {}
    session.on("Network.responseReceived", lambda e: kinds.update({e["requestId"]: e["type"]}))
    session.on(
        "Network.loadingFinished",
        lambda e: sizes.update({e["requestId"]: int(e["encodedDataLength"])}),
    )
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    page.goto(url)
    ready(page)
    page.close()
    loaded = [size for key, size in sizes.items() if kinds.get(key) in {"Script", "Stylesheet"}]
    assert len(loaded) > 2
    return round(sum(loaded) / 1024, 1)


def can_be_gone_on_with(page: Page) -> None:
    page.get_by_label("Message", exact=True).press_sequentially("And now")
    expect(page.get_by_label("Message", exact=True)).to_have_value("And now")
    expect(page.locator("article").last).to_be_in_viewport()
    expect(page.locator("article .katex").last).to_be_visible()


def is_there(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for chart in page.locator("[data-chart]:visible").all():
        expect(chart.locator("canvas")).to_be_visible()


def test_first_load_stays_within_its_budget(page: Page, tmp_path: Path, rooms: Rooms) -> None:
    """At most 200 KiB of script and style, and a long conversation can be gone on with at once.

    `-rP` prints what it is.
    """
    long = import_chat(page, tmp_path, "A hundred", 100)
    loads = {"100 messages": first_load_kib(page.context, long, can_be_gone_on_with)}
    numbers = {room: number for (room, name), number in rooms.items() if name == "pk"}
    for pattern in FIRST_PAGES:
        address = pattern.format(**numbers)
        loads[address] = first_load_kib(page.context, address, is_there)
    for what, load in loads.items():
        sys.stdout.write(f"{what}: {load} KiB\n")
    assert max(loads.values()) <= BUDGET_KIB
