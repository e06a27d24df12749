"""A message is dictated, and an answer read aloud."""

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import arrive

pytestmark = pytest.mark.timeout(300)

SPEECH = """
window.spoken = [];
Object.defineProperty(window, "speechSynthesis", { value: {
  speak: (utterance) => window.spoken.push(utterance.text), cancel: () => {} } });
window.SpeechSynthesisUtterance = class extends EventTarget {
  constructor(text) { super(); this.text = text; } };
window.SpeechRecognition = class extends EventTarget {
  start() { window.heard = (text) => {
    const results = [Object.assign([{ transcript: text }], { isFinal: true })];
    this.dispatchEvent(Object.assign(new Event("result"), { results, resultIndex: 0 })); }; }
  stop() { this.dispatchEvent(new Event("end")); } };
"""


def test_dictate_and_read_aloud(page: Page) -> None:
    page.add_init_script(SPEECH)
    page.goto("/chat/")
    button = page.get_by_role("button", name="Dictate")
    button.click()
    page.evaluate("heard('What is the')")
    page.evaluate("heard('prompt cache?')")
    field = page.get_by_label("Message", exact=True)
    expect(field).to_have_value("What is the prompt cache?")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    field.press("Enter")
    arrive(page, r"/chat/\d+/")
    answer = page.locator("article.answer:not(.answer-live)")
    expect(answer).to_have_count(1)
    answer.hover()
    answer.get_by_label("More actions").click()
    answer.get_by_role("button", name="Read aloud").click()
    said = " ".join(page.evaluate("spoken"))
    assert said.split() == answer.locator("[data-message-text]").inner_text().split()
