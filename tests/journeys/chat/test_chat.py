"""Chat, with a reload in mid-answer."""

import re

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.journeys.conftest import arrive

pytestmark = pytest.mark.timeout(300)


def ask(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")


def test_a_question_and_a_second_one(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Hello!")
    arrive(page, r"/chat/\d+/")
    answer = page.get_by_label("Answer", exact=True)
    expect(answer).to_have_count(1)
    expect(answer).to_contain_text(re.compile(r"\d+ tokens?"))
    expect(answer).to_contain_text("Cached")
    ask(page, "What can I do here?")
    expect(answer).to_have_count(2)
    expect(answer.last).to_contain_text(re.compile(r"\d+ tokens?"))
    expect(page.get_by_role("link", name="Hello!")).to_be_visible()


def test_what_is_typed_is_typed_and_an_edit_leads_back(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Hello!")
    arrive(page, r"/chat/\d+/")
    answer = page.get_by_label("Answer", exact=True)
    expect(answer).to_contain_text(re.compile(r"\d+ tokens?"))
    message = page.get_by_label("Message", exact=True)
    # Option+E on a German Mac: the key's place is that of "Edit your last message".
    typed = {"key": "€", "code": "KeyE", "altKey": True, "bubbles": True, "cancelable": True}
    message.focus()
    message.dispatch_event("keydown", typed)
    expect(page.locator("[data-edit-form]")).to_have_count(0)
    message.dispatch_event("keydown", typed | {"key": "e"})
    page.locator("[data-edit-form] textarea").fill("Good morning!")
    page.keyboard.press("Enter")
    expect(page.get_by_text("2/2")).to_be_visible()
    expect(message).to_be_focused()
    expect(answer).to_contain_text(re.compile(r"\d+ tokens?"))
    # The key that edits the last message moves nothing, and here all of the thread is in view.
    message.press("ArrowUp")
    page.locator("[data-edit-form] textarea").fill("Good evening!")
    page.keyboard.press("Enter")
    versions = page.locator(".question .siblings")
    expect(versions).to_contain_text("3/3")
    bubble = page.locator(".question .bubble").bounding_box()
    arrows = versions.bounding_box()
    assert bubble
    assert arrows
    assert abs(right_of(bubble) - right_of(arrows)) < 8
    expect(answer).to_contain_text(re.compile(r"\d+ tokens?"))
    expect(page.locator("[data-to-end]")).to_be_hidden()


def right_of(box: FloatRect) -> float:
    return box["x"] + box["width"]


def test_a_window_that_is_behind_keeps_the_text(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Hello!")
    arrive(page, r"/chat/\d+/")
    answer = page.get_by_label("Answer", exact=True)
    expect(answer).to_contain_text(re.compile(r"\d+ tokens?"))
    other = page.context.new_page()
    other.goto(page.url)
    ask(other, "From another window")
    expect(other.get_by_label("Answer", exact=True)).to_have_count(2)
    expect(other.get_by_label("Answer", exact=True).last).to_contain_text(
        re.compile(r"\d+ tokens?")
    )
    ask(page, "From this one")
    expect(page.get_by_role("alert")).to_contain_text("Your message was not sent")
    expect(page.locator("#thread")).to_contain_text("From another window")
    expect(page.get_by_label("Message", exact=True)).to_have_value("From this one")
    page.get_by_label("Message", exact=True).press("Enter")
    expect(answer).to_have_count(3)


@pytest.mark.usefixtures("slow_model")
def test_a_reload_in_mid_answer_loses_nothing(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Count.")
    live = page.locator("article.answer-live [data-text]")
    expect(live).to_contain_text(" 20 ")
    page.reload()
    expect(page.locator("article.answer-live")).to_have_count(1)
    expect(live).to_contain_text(" 100 ")
    page.keyboard.press("Escape")
    expect(page.locator("article.answer-live")).to_have_count(0)
    counted = numbers(page.get_by_label("Answer", exact=True).locator(".prose"))
    assert len(counted) > 100
    assert counted == list(range(len(counted)))


@pytest.mark.usefixtures("slow_model")
def test_stop_keeps_the_text(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Count.")
    expect(page.locator("article.answer-live [data-text]")).to_contain_text(" 20 ")
    page.keyboard.press("Escape")
    answer = page.get_by_label("Answer", exact=True)
    expect(answer).to_contain_text("Stopped")
    expect(page.locator("article.answer-live")).to_have_count(0)
    state, text = answer.get_by_text("Stopped").bounding_box(), answer.bounding_box()
    assert state
    assert text
    assert state["x"] >= text["x"]  # an old message is cut off at its edge
    counted = numbers(answer.locator(".prose"))
    assert 20 < len(counted) < 2000
    assert counted == list(range(len(counted)))


def numbers(text: Locator) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", text.inner_text())]


@pytest.mark.usefixtures("slow_model")
def test_escape_closes_what_is_open_before_it_stops(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Count.")
    live = page.locator("article.answer-live [data-text]")
    expect(live).to_contain_text(" 20 ")
    panel = page.locator("#settings")
    page.get_by_role("button", name="Chat settings").click()
    expect(panel).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    expect(page.locator("article.answer-live")).to_have_count(1)
    page.get_by_label("Message", exact=True).focus()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Answer", exact=True)).to_contain_text("Stopped")


NOTIFICATIONS = """
window.notified = [];
window.Notification = class extends EventTarget {
  static permission = localStorage.getItem("allowed") ?? "default";
  static requestPermission = async () => {
    localStorage.setItem("allowed", "granted");
    return Notification.permission = "granted";
  };
  constructor(title, {body}) { super(); window.notified.push(`${title}: ${body}`); }
};
"""


@pytest.mark.usefixtures("slow_model")
def test_a_browser_that_is_allowed_to_notifies_of_an_answer_in_the_background(page: Page) -> None:
    page.add_init_script(NOTIFICATIONS)
    page.goto("/settings/#chat-defaults")
    switch = page.get_by_role("switch", name="Notify me")
    expect(switch).not_to_be_checked()
    switch.check()
    page.reload()
    expect(switch).to_be_checked()
    page.goto("/chat/")
    ask(page, "Count.")
    expect(page.locator("article.answer-live [data-text]")).to_contain_text(" 20 ")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.keyboard.press("Escape")
    expect(page).to_have_title(re.compile("^● "))
    assert "The answer is finished." in page.evaluate("window.notified[0]")


@pytest.mark.usefixtures("slow_model")
def test_a_tab_that_nobody_looks_at_tells_that_its_answer_is_finished(page: Page) -> None:
    page.goto("/chat/")
    ask(page, "Count.")
    expect(page.locator("article.answer-live [data-text]")).to_contain_text(" 20 ")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.keyboard.press("Escape")
    expect(page).to_have_title(re.compile("^● "))
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page).not_to_have_title(re.compile("●"))
