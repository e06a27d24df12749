"""The Servers page, live: what happens is seen without a reload, and nothing jumps."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.journeys.conftest import in_browser
from tests.llama_process import LlamaProcess
from tests.standins.process import Standin
from tests.standins.state import Model
from tests.waiting import wait_in_page

pytestmark = pytest.mark.timeout(300)

# What moves after the first paint, each with what it was.
WATCH_SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifts.push(entry.value);
  }).observe({type: "layout-shift"});
}"""

# Two frames later what was changed before is on the screen.
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name, exact=True)


NOON = datetime(2030, 1, 1, 12)


class Polls:
    """The requests for the cards, of which one is open at a time."""

    def __init__(self, page: Page) -> None:
        self._page, self._ended = page, 0
        self.asked = 0
        page.on("request", self._begin)
        page.on("requestfinished", self._end)

    def _begin(self, request: Request) -> None:
        self.asked += "/servers/cards/" in request.url

    def _end(self, request: Request) -> None:
        self._ended += "/servers/cards/" in request.url

    def since(self, before: int) -> int:
        """How many there were since then, once the last is answered."""
        wait_in_page(self._page, lambda: self._ended >= self.asked)
        return self.asked - before


JOB = {
    "name": "Reviews v2",
    "rows": 2000,
    # Long enough to be seen in all slots at once, where a busy machine takes its time between rows.
    "recipe": {"prompt": "Write a review of a kettle.", "params": {"max_tokens": 800}},
}


@pytest.fixture
def router(llama: LlamaProcess) -> Iterator[Standin]:
    models = [Model("chat-14b", slots=3, loaded=True), Model("judge-4b", slots=2)]
    with Standin("router", llama, models=models, api_key="secret-of-the-router") as standin:
        yield standin


def test_a_job_is_seen_in_its_slots(page: Page) -> None:
    page.goto("/servers/")
    server = card(page, "Chat server")
    expect(server).to_contain_text("0 of 4 busy")
    server.locator("summary.server-line").click()
    expect(server.get_by_text("Free")).to_have_count(4)
    expect(server.get_by_role("table")).to_be_visible()
    server.get_by_role("link", name="Edit").focus()
    page.evaluate(DRAWN)  # what the click moved was wanted
    page.evaluate(WATCH_SHIFTS)

    job = in_browser(page.context, "post", "/api/v1/jobs", JOB)
    words = re.compile(r"4 of 4 slots busy with '.+'; chat takes priority\.")
    expect(server).to_contain_text(words)
    boxes = server.locator(".box-job")
    expect(boxes).to_have_count(4)
    expect(boxes.filter(has_text="tokens").first).to_be_visible()
    # The first rows have ended: the charts stand where it said that no requests.
    rate = server.locator("[data-chart=completion]")
    expect(rate.locator("canvas")).to_be_visible()
    canvas = rate.locator("canvas").element_handle()
    rate.locator(".u-over").hover()
    expect(rate.locator(".chart-tip")).to_contain_text("tokens/s")
    in_browser(page.context, "post", f"/api/v1/jobs/{job['id']}/cancel")
    expect(server).to_contain_text("Idle.")

    # What a person has opened and where his focus is outlive every poll; so do the charts.
    expect(server.get_by_role("table")).to_be_visible()
    expect(server.get_by_role("link", name="Edit")).to_be_focused()
    assert canvas is not None
    assert canvas.evaluate("node => node.isConnected")
    assert sum(page.evaluate("window.shifts")) < 0.01


def test_polling_is_slow_and_stops_in_a_hidden_tab(page: Page) -> None:
    polls = Polls(page)
    page.clock.install(time=NOON)
    page.goto("/servers/")
    expect(card(page, "Chat server")).to_contain_text("of 4 busy")
    page.clock.pause_at(NOON + timedelta(hours=1))  # from here on time passes when we say so
    before = polls.since(0)
    page.evaluate(WATCH_SHIFTS)
    page.clock.run_for(7000)
    assert 1 <= polls.since(before) <= 3
    assert sum(page.evaluate("window.shifts")) < 0.01
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})"
    )
    before = polls.asked
    page.clock.run_for(60_000)
    assert polls.since(before) == 0
    with page.expect_request_finished(lambda request: "/servers/cards/" in request.url):
        page.evaluate(
            "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"
        )
    assert polls.since(before) == 1


def test_a_server_is_added_used_and_removed(page: Page, router: Standin) -> None:
    page.goto("/servers/")
    before = page.get_by_role("article").count()
    page.get_by_role("button", name="Add a server").press("Enter")
    dialog = page.get_by_role("dialog", name="Add a server")
    address = dialog.get_by_label("Address")
    expect(address).to_be_focused()
    address.fill(router.base_url)
    address.press("Tab")
    expect(dialog).to_contain_text("This server needs a key")
    dialog.get_by_label("API key").fill("secret-of-the-router")
    dialog.get_by_role("button", name="Test").press("Enter")
    expect(dialog).to_contain_text("Ready: llama-server router, 2 models")
    dialog.get_by_label("Name", exact=True).fill("My router")
    dialog.get_by_role("button", name="Add server").press("Enter")
    server = card(page, "My router")
    expect(server).to_contain_text("Idle.")  # it is open
    expect(server.get_by_role("listitem").filter(has_text="Free")).to_have_count(3)
    assert "secret-of-the-router" not in page.content()

    judge = server.get_by_role("listitem").filter(has_text="judge-4b")
    judge.get_by_role("button", name="Load").press("Enter")
    expect(judge.get_by_role("button", name="Unload")).to_be_focused()
    expect(server.get_by_role("listitem").filter(has_text="Free")).to_have_count(5)
    judge.get_by_role("button", name="Unload").press("Enter")
    expect(judge).to_contain_text("Unloaded")
    assert router.states == {"chat-14b": "loaded", "judge-4b": "unloaded"}

    generation = page.get_by_label("Generation")
    chosen = generation.input_value()
    generation.select_option(label="My router: chat-14b")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toast")).to_contain_text("Generation: My router, chat-14b.")
    page.get_by_label("Generation").select_option(chosen)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toast")).not_to_contain_text("My router")

    server.locator("summary.server-line").click()
    page.on("dialog", lambda dialog: dialog.accept())
    server.get_by_role("link", name="Remove").click()
    page.get_by_role("button", name="Remove server").click()
    expect(page.get_by_role("article")).to_have_count(before)


def test_a_link_opens_the_dialog_and_a_mistake_is_seen(page: Page) -> None:
    page.goto("/servers/#add-server")
    dialog = page.get_by_role("dialog", name="Add a server")
    address = dialog.get_by_label("Address", exact=True)
    expect(address).to_be_focused()
    address.fill("256.256.256.256:8080")
    address.press("Tab")
    expect(dialog.get_by_text("is not a valid address")).to_be_visible()
    dialog.get_by_label("Name", exact=True).fill("Mistyped")
    dialog.get_by_role("button", name="Add server").click()
    error = dialog.get_by_text("is not a valid address")
    expect(error).to_be_in_viewport()
    expect(address).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(card(page, "Mistyped")).to_have_count(0)
