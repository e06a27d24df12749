"""A model that calls tools: what it may, what waits for its person, and what a reload keeps."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.chat.tools.tool_server import ToolServer, call, say, think
from tests.journeys.axe import violations
from tests.journeys.conftest import answered_by

pytestmark = pytest.mark.timeout(300)

SCRIPT = [
    [
        *think("Two things to look up."),
        *say("One moment."),
        *call(0, "c1", "calculator", '{"expression": "6 * 7"}'),
        *call(1, "c2", "date_and_time", "{}"),
    ],
    call(0, "c3", "start_generation_job", '{"recipe": "Nothing", "rows": 3}'),
    say("All done."),
]


@pytest.fixture(scope="module", autouse=True)
def _caller(person: BrowserContext) -> Iterator[None]:
    with (
        ToolServer(SCRIPT, by_round=True) as server,
        answered_by(person, "Caller", server.base_url, "caller"),
    ):
        yield


OPEN = """async (tools) => {
  const headers = {...JSON.parse(document.body.getAttribute("hx-headers")),
                   "Content-Type": "application/json"};
  const body = JSON.stringify({tools: {use: tools}});
  const opened = await fetch("/api/v1/conversations", {method: "POST", headers, body});
  return (await opened.json()).id;
}"""


def test_calls_are_shown_and_one_waits_for_its_person(page: Page) -> None:
    page.goto("/chat/")
    always = {"calculator": "always", "date_and_time": "always"}
    conversation = page.evaluate(OPEN, {**always, "start_generation_job": "ask"})
    page.goto(f"/chat/{conversation}/")
    page.get_by_label("Message", exact=True).fill("Look it up.")
    page.get_by_label("Message", exact=True).press("Enter")
    waiting = page.locator(".call-waiting")
    expect(waiting).to_contain_text("Start a generation job")

    page.reload()
    expect(waiting).to_contain_text('"rows": 3')
    expect(page.locator(".call")).to_have_count(3)
    expect(page.locator(".call-done")).to_have_count(2)
    expect(page.locator("article.answer-live")).to_contain_text("Onemoment.")

    waiting.get_by_role("button", name="Allow", exact=True).click()
    answer = page.get_by_label("Answer", exact=True)
    expect(page.locator("article.answer-live")).to_have_count(0)
    expect(answer).to_contain_text("Alldone.")
    cards = answer.locator(".call")
    expect(cards).to_have_count(3)
    cards.first.locator("> summary").click()
    expect(cards.first.get_by_label("Result")).to_have_text("42")
    expect(cards.last).to_contain_text("Failed")

    page.reload()
    expect(answer.locator(".call")).to_have_count(3)
    texts = answer.locator(".prose[data-message-text]")
    expect(texts).to_have_text(["Onemoment.", "Alldone."])


def test_tools_are_chosen_in_the_panel(page: Page) -> None:
    page.goto("/chat/")
    conversation = page.evaluate(OPEN, {})
    page.goto(f"/chat/{conversation}/")
    page.keyboard.press("Alt+m")
    tab = page.get_by_role("tab", name="Tools")
    tab.click()
    calculator = page.get_by_role("radiogroup", name="Calculator")
    calculator.get_by_label("Off").press("ArrowRight")
    expect(page.locator("#save-status")).to_have_text("Saved.")
    expect(tab).to_have_text(re.compile(r"Tools\s*1"))
    assert violations(page, "tools") == []
    page.reload()
    expect(calculator.get_by_label("Ask first")).to_be_checked()
    change_in_the_composer(page)
    expect(calculator.get_by_label("Off")).to_be_checked()


def change_in_the_composer(page: Page) -> None:
    """Clear the tools by their chip: the open panel must not bring the old ones back."""
    page.locator("[data-chip=tools]").press("Backspace")
    expect(page.locator("[data-chip=tools]")).to_have_text(re.compile("Tools"))
