"""Whatever happens to a page, a tab, a network or a process: the page says what the server sent."""

import json
import math
import os
import random
import re
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from redis import Redis

from apps.chat.streaming.events import Snapshot, StreamEvent, replay
from apps.chat.streaming.redis_writer import stream_key
from apps.core.text import markdown
from apps.core.text.live_markdown import LiveMarkdown
from tests.browser.conftest import OTHER_QUESTION, OpenDevice
from tests.browser.teller import (
    CALLED,
    OTHER,
    TEXT,
    THOUGHT,
    TYPESET,
    Teller,
    beginning,
    pieces,
)
from tests.browser.wire import Wire
from tests.chat.tools.tool_server import call
from tests.stack import Stack
from tests.waiting import wait_in_page

pytestmark = pytest.mark.timeout(240)

MOMENTS = 30
LIVE = "article.answer-live"
FINISHED = "article.answer:not(.answer-live)"


def ask(page: Page, text: str) -> None:
    field = page.get_by_label("Message", exact=True)
    field.fill(text)
    field.press("Enter")


def begin(page: Page, text: str = "Tell me.") -> None:
    """A new conversation, and its answer begun. The test has said how far it may come."""
    page.goto("/chat/")
    ask(page, text)
    expect(page.locator(LIVE)).to_have_count(1)


def wait_for(page: Page, text: str) -> None:
    """Waits until the live answer shows this, typeset as far as it is written."""
    page.wait_for_function("(html) => live() === asBlocks(html)", arg=typeset(text))


def typeset(text: str) -> str:
    written = LiveMarkdown()
    written.add(text)
    written.render()
    return "".join(written.blocks + written.open)


def wait_for_end(page: Page) -> None:
    expect(page.locator(LIVE)).to_have_count(0)


def api(page: Page, path: str) -> Any:
    answer = page.request.get(f"/api/v1/{path}")
    assert answer.ok, answer.text()
    return answer.json()


def newest_pk(page: Page) -> int:
    """Of the newest answer of the conversation on the page."""
    name = page.locator("article.answer").last.get_attribute("id")
    assert name is not None
    return int(name.removeprefix("answer-"))


def newest(page: Page) -> Any:
    """The newest answer, as the server has it."""
    return api(page, f"answers/{newest_pk(page)}")


def check(page: Page, text: str, thought: str | None = THOUGHT) -> None:
    """The newest answer, finished: the server has this text and the page shows what it is."""
    saved = newest(page)
    assert saved["content"] == text
    article = page.locator(FINISHED).last
    assert article.locator("[data-message-text]").evaluate("clean") == rendered(page, text)
    if thought is not None:
        assert saved["reasoning"] == thought
        assert article.locator(".reasoning .prose").evaluate("clean") == rendered(page, thought)


def rendered(page: Page, text: str) -> Any:
    """A Markdown text as a browser writes down its HTML, without what is between blocks."""
    return page.evaluate("asBlocks", markdown.render(text))


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> Iterator[random.Random]:
    """Chance that can be had again: WORKBENCH_SEED, which a failed test prints."""
    seed = int(os.environ.get("WORKBENCH_SEED") or secrets.randbelow(10**6))
    request.node.add_report_section("call", "seed", f"WORKBENCH_SEED={seed}")
    return random.Random(seed)


def test_a_reload_at_any_moment(page: Page, teller: Teller, chance: random.Random) -> None:
    teller.allowed = 0
    begin(page)
    for _ in range(MOMENTS):
        teller.allowed += chance.randint(0, 6)
        page.wait_for_timeout(chance.uniform(0, 60))  # any moment, by the seed
        before = page.evaluate("live()")
        page.reload(wait_until="commit")
        # Nothing that was shown is gone; that it is what was said, the watch in the page sees to.
        page.wait_for_function("(size) => live().length >= size", arg=len(before))
    wait_for(page, beginning(int(teller.allowed)))
    teller.allowed = math.inf
    wait_for_end(page)
    check(page, TEXT)


def test_two_tabs_and_another_device(page: Page, teller: Teller, open_device: OpenDevice) -> None:
    teller.allowed = 50
    begin(page)
    tabs = [page, page.context.new_page(), open_device().new_page()]
    for tab in tabs[1:]:
        tab.goto(page.url)
    for teller.allowed in (60, 90):
        for tab in tabs:
            wait_for(tab, beginning(int(teller.allowed)))
    teller.allowed = math.inf
    for tab in tabs:
        wait_for_end(tab)
        check(tab, TEXT)


@pytest.fixture
def wire(stack: Stack) -> Iterator[Wire]:
    with Wire(stack.port) as wire:
        yield wire


@pytest.fixture
def far_page(wire: Wire, open_device: OpenDevice) -> Page:
    return open_device(wire.url).new_page()


@pytest.mark.parametrize("ends_meanwhile", [False, True])
def test_the_network_goes_and_comes_back(
    far_page: Page, teller: Teller, wire: Wire, ends_meanwhile: bool
) -> None:
    teller.allowed = 50
    begin(far_page)
    wait_for(far_page, beginning(50))
    wire.cut()
    expect(far_page.locator(LIVE)).to_contain_text("Connection lost")
    wait_for(far_page, beginning(50))
    teller.allowed = math.inf if ends_meanwhile else 100
    if ends_meanwhile:
        wait_in_page(far_page, lambda: not teller.open)
    wire.mend()
    if not ends_meanwhile:
        wait_for(far_page, beginning(100))
        teller.allowed = math.inf
    wait_for_end(far_page)
    check(far_page, TEXT)


def test_a_connection_that_died_in_silence(far_page: Page, teller: Teller, wire: Wire) -> None:
    """As after a machine has slept: nobody has told the browser that nothing will come."""
    teller.allowed = 50
    begin(far_page)
    wait_for(far_page, beginning(50))
    wire.silence()
    teller.allowed = math.inf
    wait_in_page(far_page, lambda: not teller.open)
    wait_for(far_page, beginning(50))
    far_page.evaluate("window.dispatchEvent(new Event('online'))")
    wait_for_end(far_page)
    check(far_page, TEXT)


def test_answer_now_by_its_key(page: Page, teller: Teller) -> None:
    """This server cannot end a thought: it is asked again, and the thought is kept."""
    teller.allowed = 2
    begin(page)
    expect(page.get_by_role("button", name="Answer now")).to_be_visible()
    with page.expect_response("**/now/") as sent:
        page.keyboard.press("Alt+a")
    assert sent.value.status == 204
    teller.allowed = math.inf
    wait_for_end(page)
    check(page, TEXT, thought=None)
    thought = newest(page)["reasoning"]
    assert THOUGHT.startswith(thought)
    assert 0 < len(thought) < len(THOUGHT)


def test_stop_and_go_on(page: Page, teller: Teller) -> None:
    teller.allowed = 60
    begin(page)
    wait_for(page, beginning(60))
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)
    check(page, beginning(60))
    page.reload()
    check(page, beginning(60))
    teller.allowed = 10
    page.locator(FINISHED).get_by_role("button", name="Continue").click()
    begun = beginning(60).rstrip()  # white space at the end is written again
    wait_for(page, begun + "".join(pieces(TEXT[len(begun) :], len(begun))[:10]))
    teller.allowed = math.inf
    wait_for_end(page)
    check(page, TEXT)


# An expression; to wait for confidence takes a function, which the page's policy allows to ask
# more than once.
FROM_END = """(() => {
  const {scrollHeight, scrollTop, clientHeight} = document.querySelector("[data-scroll]");
  return scrollHeight - scrollTop - clientHeight;
})()"""
GROW = """(height) => {
  document.querySelector("article").style.minHeight = height;
  document.querySelector("[data-scroll]").dispatchEvent(new Event("scroll"));
}"""


READ = """(() => {
  window.read = document.elementFromPoint(700, 300);
  return window.read.getBoundingClientRect().top;
})()"""
STILL_READ = "window.read.getBoundingClientRect().top"


def test_only_who_scrolls_up_leaves_the_end(page: Page, teller: Teller) -> None:
    teller.allowed = 50
    begin(page)
    teller.allowed = math.inf
    wait_for_end(page)
    page.wait_for_function(f"() => {FROM_END} < 48")
    # Between a scroll and its event, as where messages get their height when they come near.
    page.evaluate(GROW, "3000px")
    page.wait_for_function(f"() => {FROM_END} < 48")
    page.mouse.move(700, 300)
    page.mouse.wheel(0, -600)
    page.wait_for_function(f"() => {FROM_END} >= 595")
    # What gets its height above does not move what is being read.
    place = page.evaluate(READ)
    page.evaluate(GROW, "4000px")
    page.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert page.evaluate(FROM_END) > 500
    assert page.evaluate(STILL_READ) == pytest.approx(place, abs=10)


def test_branches_in_mid_answer(page: Page, teller: Teller) -> None:
    teller.allowed = 40
    begin(page)
    teller.allowed = math.inf
    wait_for_end(page)
    teller.allowed = 40
    page.locator("[data-edit]").click()
    field = page.get_by_role("textbox", name="Edit message")
    field.fill(OTHER_QUESTION)
    field.press("Enter")
    expect(page.get_by_label("Message 2 of 2")).to_be_visible()
    expect(page.locator(LIVE)).to_contain_text("Another answer, line 1")
    page.get_by_label("Previous version of this message").click()
    expect(page.get_by_label("Message 1 of 2")).to_be_visible()
    check(page, TEXT)
    page.get_by_label("Next version of this message").click()
    expect(page.get_by_label("Message 2 of 2")).to_be_visible()
    expect(page.locator(LIVE)).to_contain_text("Another answer, line 1")
    teller.allowed = math.inf
    wait_for_end(page)
    check(page, OTHER)
    page.get_by_label("Regenerate").click()
    expect(page.get_by_label("Answer 2 of 2")).to_be_visible()
    check(page, OTHER)
    page.get_by_label("Previous version of this answer").click()
    expect(page.get_by_label("Answer 1 of 2")).to_be_visible()
    check(page, OTHER)


def begin_call(page: Page, teller: Teller) -> None:
    """A new conversation whose answer has called something that waits for its person."""
    first, last = CALLED
    teller.calls["Work it out."] = [
        [{"content": first}, *call(0, "c1", "calculator", '{"expression": "6 * 7"}')],
        [{"content": last}],
    ]
    page.goto("/chat/")
    headers = page.evaluate("JSON.parse(document.body.getAttribute('hx-headers'))")
    tools = {"use": {"calculator": "ask"}}
    opened = page.request.post("/api/v1/conversations", data={"tools": tools}, headers=headers)
    page.goto(f"/chat/{opened.json()['id']}/")
    ask(page, "Work it out.")
    expect(page.locator(".call-waiting")).to_be_visible()


def check_called(tab: Page) -> None:
    """The newest answer has run its call and gone on."""
    wait_for_end(tab)
    expect(tab.locator(".call-done")).to_have_count(1)
    said = [part.evaluate("clean") for part in tab.locator(f"{FINISHED} [data-message-text]").all()]
    assert said == [rendered(tab, text) for text in CALLED]
    saved = newest(tab)
    assert (saved["status"], saved["content"]) == ("complete", "\n\n".join(CALLED))
    assert [made["result"] for made in saved["tool_calls"]] == ["42"]


def test_a_call_approved_in_another_tab(page: Page, teller: Teller) -> None:
    begin_call(page, teller)
    other = page.context.new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Allow", exact=True).click()
    for tab in (page, other):
        check_called(tab)


def test_an_attachment(page: Page, teller: Teller, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text(f"<b>Kettles</b> & 🫖\n\n{TEXT}", encoding="utf-8")
    page.goto("/chat/")
    page.get_by_label("Files to attach").set_input_files(notes)
    expect(page.locator("[data-attachment]")).to_contain_text("tokens")
    teller.allowed = 30
    ask(page, "Tell me.")
    expect(page.locator(LIVE)).to_have_count(1)
    page.reload()
    expect(page.locator(".question .attachment")).to_contain_text("notes.txt")
    teller.allowed = math.inf
    wait_for_end(page)
    check(page, TEXT)
    assert notes.read_text(encoding="utf-8") in teller.asked[-1]["messages"][-1]["content"]
    file = page.request.get(page.locator(".question .attachment").get_attribute("href") or "")
    assert file.body() == notes.read_bytes()


def test_import_search_and_export(page: Page, tmp_path: Path) -> None:
    said = {
        f"{n}": {"parentId": f"{n - 1}" if n else None, "role": ("user", "assistant")[n % 2],
                 "content": TEXT if n % 2 else f"Question {n}: xylophone"}
        for n in range(6)
    }  # fmt: skip
    file = tmp_path / "chats.json"
    chat = {"title": "Imported", "history": {"messages": said, "currentId": "5"}}
    file.write_text(json.dumps([{"id": "imported", "chat": chat}]))
    page.goto("/chat/import/")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("1 chat with 6 messages imported.")).to_be_visible()
    page.get_by_role("button", name="Search or jump to").click()
    page.get_by_label("Search or type a command").fill("xylophone 4")
    page.get_by_role("option").first.click()
    expect(page.locator("article.found")).to_contain_text("Question 4: xylophone")
    check(page, TEXT, thought=None)
    expected = rendered(page, TEXT)
    shown = [
        part.evaluate("clean") for part in page.locator(f"{FINISHED} [data-message-text]").all()
    ]
    assert shown == [expected] * 3


def kill_web(page: Page, stack: Stack, text: str, calls: int = 0) -> None:
    """Once what is shown is in Redis, which is some milliseconds later."""
    (web,) = stack.processes("uvicorn")
    with Redis.from_url(web.environ()["REDIS_URL"], decode_responses=True) as redis:

        def is_kept() -> bool:
            kept = in_redis(redis, newest_pk(page))
            return (kept.text, len(kept.calls)) == (text, calls)

        wait_in_page(page, is_kept)
    web.send_signal(signal.SIGKILL)


def in_redis(redis: Redis, answer: int) -> Snapshot:
    entries: Any = redis.xrange(stream_key(answer))
    return replay(StreamEvent(0, said["e"], said["d"]) for _, said in entries)


def test_a_call_waits_though_the_web_process_is_killed(
    page: Page, teller: Teller, stack: Stack
) -> None:
    begin_call(page, teller)
    kill_web(page, stack, CALLED[0], calls=1)
    expect(page.get_by_text("Allow or deny it to continue.")).to_be_visible(timeout=90_000)
    page.get_by_role("button", name="Allow", exact=True).click()
    expect(page.get_by_label("Answer 2 of 2")).to_be_visible()
    check_called(page)


def test_the_web_process_is_killed(page: Page, teller: Teller, stack: Stack) -> None:
    teller.allowed = 80
    begin(page)
    wait_for(page, beginning(80))
    kill_web(page, stack, beginning(80))
    expect(page.locator(LIVE)).to_have_count(0, timeout=90_000)  # a new process has to start
    assert newest(page)["status"] == "interrupted"
    check(page, beginning(80))
    teller.allowed = math.inf
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(FINISHED).get_by_label("Answer 2 of 2")).to_be_visible()
    check(page, TEXT)


TOPS = """(() => [...document.querySelectorAll("article.answer .prose:not(.muted) > .bundle > *")]
  .map((block) => Math.round(block.getBoundingClientRect().top)))()"""
SELECT = """(() => {
  const quoted = document.querySelector("article.answer blockquote p").firstChild;
  document.getSelection().setBaseAndExtent(quoted, 2, quoted, 11);
})()"""


def test_nothing_moves_and_nothing_is_unselected_when_an_answer_ends(
    page: Page, teller: Teller
) -> None:
    teller.says["Typeset it."] = TYPESET
    teller.allowed = len(pieces(TYPESET, 0)) + len(pieces(THOUGHT, 1)) - 1
    begin(page, "Typeset it.")
    expect(page.locator(f"{LIVE} blockquote")).to_contain_text("be selected.")
    expect(page.locator(f"{LIVE} .math-shown")).to_have_count(2)
    expect(page.locator(f"{LIVE} figure.code").get_by_role("button", name="Copy")).to_have_count(2)
    page.evaluate(SELECT)
    tops = page.evaluate(TOPS)
    teller.allowed = math.inf
    wait_for_end(page)
    assert page.evaluate("document.getSelection().toString()") == "quotation"
    assert page.evaluate(TOPS)[: len(tops)] == tops
    shown = page.locator(f"{FINISHED} [data-message-text]").inner_text()
    assert not [mark for mark in ("**", "##", "```", "|-", "$$", "\\(") if mark in shown]
    page.reload()
    check(page, TYPESET)


def test_a_reader_further_up_is_told_of_the_answer(page: Page, teller: Teller) -> None:
    teller.allowed = 100
    begin(page)
    wait_for(page, beginning(100))
    to_end = page.locator("[data-to-end]")
    expect(to_end).to_be_hidden()
    page.mouse.move(700, 300)
    page.mouse.wheel(0, -300)
    expect(to_end).to_have_text("Jump to end")
    teller.allowed = math.inf
    wait_for_end(page)
    expect(to_end).to_have_text("New answer")
    assert page.evaluate(FROM_END) > 300
    page.get_by_label("Message", exact=True).press("End")
    expect(to_end).to_be_hidden()
    page.wait_for_function(f"() => {FROM_END} < 48")


def test_a_server_that_says_nothing_is_timed(page: Page, teller: Teller) -> None:
    teller.allowed = 0
    page.clock.install()
    begin(page)
    state = page.locator(f"{LIVE} [data-state]")
    expect(state).to_have_text("Waiting for the first token…")
    page.clock.run_for(7000)
    expect(state).to_have_text(re.compile(r"Waiting for the first token \(\d+ s\)…"))
    teller.allowed = 20
    expect(state).to_have_text("Writing…")
    page.clock.run_for(12_000)
    expect(state).to_have_text(re.compile(r"No new text \(\d\d s\)…"))
    teller.allowed = math.inf
    wait_for_end(page)
    check(page, TEXT)
