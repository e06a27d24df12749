"""The composer: what is set before the first message, prompts, long pastes and the queue."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.chat.tools.tool_server import ToolServer, call, say
from tests.journeys.conftest import Login, answered_by, arrive, in_browser
from tests.stack import Stack

pytestmark = pytest.mark.timeout(300)

TEXT = ("word " * 900).strip()
SCRIPT = [call(0, "c1", "calculator", '{"expression": "6 * 7"}'), say("Done.")]


@pytest.fixture
def caller(person: BrowserContext) -> Iterator[None]:
    with (
        ToolServer(SCRIPT, by_round=True) as server,
        answered_by(person, "Caller", server.base_url, "caller"),
    ):
        yield


def message(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


def chip(page: Page, name: str) -> Locator:
    return page.locator(f"[data-chip={name}]")


def menu_of(page: Page, name: str) -> Locator:
    chip(page, name).focus()
    page.keyboard.press("Enter")
    menu = page.locator("#composer-menu")
    expect(menu).to_have_attribute("data-name", name)
    expect(menu).to_be_visible()
    return menu


def test_what_to_start_with_stands_under_headings(page: Page) -> None:
    page.goto("/chat/")
    expect(page.get_by_role("heading", name="Start with")).to_be_visible()


@pytest.mark.usefixtures("caller")
def test_tool_json_and_preset_before_the_first_message(page: Page, person: BrowserContext) -> None:
    preset = {"name": "Cold", "params": {"temperature": 0.1}}
    in_browser(person, "post", "/api/v1/presets", preset)
    page.goto("/chat/")
    menu_of(page, "preset").get_by_role("button", name="Cold").press("Enter")
    expect(chip(page, "preset")).to_contain_text("Cold")
    expect(chip(page, "preset")).to_be_focused()

    menu = menu_of(page, "json")
    menu.get_by_role("button", name="Add field").click()
    menu.get_by_label("Field name").fill("answer")
    expect(chip(page, "json")).to_contain_text("1 field")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(chip(page, "json")).to_have_attribute("aria-expanded", "false")
    chip(page, "json").press("Backspace")  # tools are off while it is on
    expect(chip(page, "json")).to_have_text("JSON")

    menu_of(page, "tools").get_by_label("Calculator").press("Space")
    expect(chip(page, "tools")).to_contain_text("1 tool")
    page.keyboard.press("Escape")
    page.reload()
    expect(chip(page, "tools")).to_contain_text("1 tool")

    message(page).fill("How much is 6 times 7?")
    page.keyboard.press("Enter")
    arrive(page, r"/chat/\d+/")
    answer = page.get_by_label("Answer", exact=True)
    expect(answer).to_contain_text("Done.")
    expect(answer.locator(".call")).to_have_count(1)
    expect(chip(page, "preset")).to_contain_text("Cold")
    page.goto("/chat/")
    expect(chip(page, "tools")).to_contain_text("1 tool")
    for name in ("tools", "preset"):
        chip(page, name).press("Backspace")
        expect(chip(page, name)).not_to_have_class(re.compile("chip-set"))


def test_a_prompt_is_inserted_and_its_variables_are_walked(
    page: Page, person: BrowserContext
) -> None:
    page.goto("/chat/prompts/?new=journey")
    page.get_by_label("Text").last.fill("Say {{what}} to {{whom}}.")
    page.get_by_role("button", name="Create prompt").click()
    page.goto("/chat/")
    message(page).press_sequentially("/jour")
    options = page.get_by_role("option")
    expect(options).to_have_count(2)
    page.keyboard.press("Tab")
    expect(message(page)).to_have_value("Say {{what}} to {{whom}}.")
    page.keyboard.type("hello")
    page.keyboard.press("Tab")
    page.keyboard.type("all")
    expect(message(page)).to_have_value("Say hello to all.")
    expect(page.get_by_role("region", name="Start with").get_by_text("journey")).to_be_visible()
    message(page).fill("")


def test_a_long_paste_becomes_a_file_and_text_again(page: Page) -> None:
    page.goto("/chat/")
    paste = """(text) => {
        const clipboardData = new DataTransfer();
        clipboardData.setData("text/plain", text);
        const paste = new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true});
        document.querySelector("[data-composer] textarea").dispatchEvent(paste);
    }"""
    page.evaluate(paste, TEXT)
    file = page.locator("[data-attachment]")
    expect(file).to_contain_text("Pasted text.txt")
    expect(file).to_contain_text("tokens")
    page.reload()
    expect(file).to_contain_text("Pasted text.txt")
    file.get_by_role("button", name="Paste as text").click()
    expect(message(page)).to_have_value(TEXT)
    expect(file).to_have_count(0)
    message(page).fill("")


@pytest.mark.usefixtures("slow_model")
def test_messages_wait_in_a_queue_until_the_answer_is_done(page: Page) -> None:
    page.goto("/chat/")
    message(page).fill("Count.")
    page.keyboard.press("Enter")
    arrive(page, r"/chat/\d+/")
    expect(page.locator("article.answer-live")).to_have_count(1)
    queue = page.locator("[data-queue]")
    for text in ("one", "two", "three", "four"):
        message(page).fill(text)
        page.keyboard.press("Enter")
    expect(queue.get_by_role("listitem")).to_have_text(["one", "two", "three"])
    expect(page.locator("#refused")).to_contain_text("The queue is full.")
    expect(message(page)).to_have_value("four")
    message(page).fill("")

    page.reload()
    expect(queue.get_by_role("listitem")).to_have_count(3)
    queue.get_by_role("button", name="Move up").last.click()
    expect(queue.get_by_role("listitem")).to_have_text(["one", "three", "two"])
    queue.get_by_role("button", name="Remove").last.click()
    queue.get_by_role("button", name="Edit").last.click()
    expect(message(page)).to_have_value("three")
    page.keyboard.press("Enter")
    expect(queue.get_by_role("listitem")).to_have_text(["one", "three"])

    page.keyboard.press("Escape")  # a stopped answer holds the queue
    expect(queue).to_contain_text("The queue is on hold.")
    queue.get_by_role("button", name="Send the next message").click()
    expect(page.locator("#thread .question")).to_have_count(2)
    expect(page.locator("#thread .question").last).to_contain_text("one")
    expect(queue.get_by_role("listitem").first).to_have_text("three")
    page.keyboard.press("Escape")


def test_chips_are_large_enough_for_fingers(
    stack: Stack, chromium: Browser, logged_in: Login
) -> None:
    phone = chromium.new_context(
        base_url=stack.url,
        storage_state=logged_in,  # type: ignore[arg-type]
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
    )
    page = phone.new_page()
    page.goto("/chat/#new")
    boxes = [one.bounding_box() for one in page.locator("[data-chip]").all()]
    assert len(boxes) == 5
    assert all(box and box["height"] >= 44 for box in boxes)
    phone.close()
