"""Chat, with a reload in mid-answer."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import SlowModel

pytestmark = pytest.mark.timeout(300)


def ask(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")


def test_a_question_and_a_second_one(page: Page) -> None:
    page.goto("/")
    ask(page, "Hello!")
    answer = page.get_by_label("Answer", exact=True)
    expect(answer).to_have_count(1)
    expect(answer).to_contain_text(re.compile(r"\d+ tokens?"))
    expect(answer).to_contain_text("of the prompt cached")
    ask(page, "What can I do here?")
    expect(answer).to_have_count(2)
    expect(answer.last).to_contain_text(re.compile(r"\d+ tokens?"))
    expect(page.get_by_role("link", name="Hello!")).to_be_visible()


def test_a_reload_in_mid_answer_loses_nothing(page: Page, slow_model: SlowModel) -> None:
    page.goto("/")
    ask(page, "Explain step by step what this workbench is for.")
    live = page.locator("article.answer-live [data-text]")
    expect(live).not_to_be_empty()
    slow_model.hold()
    before = live.text_content() or ""
    page.reload()
    expect(page.get_by_label("Answer", exact=True)).to_contain_text(re.compile(r"\w"))
    slow_model.go_on()
    answer = page.get_by_label("Answer", exact=True)
    expect(answer).to_contain_text(re.compile(r"\d+ tokens?"))
    seen = words(before)[:-1]  # the last one may have been cut
    assert words(answer.text_content() or "")[: len(seen)] == seen
    expect(page.locator("article.answer-live")).to_have_count(0)


def test_stop_keeps_the_text(page: Page, slow_model: SlowModel) -> None:
    page.goto("/")
    ask(page, "Tell me everything about slots and the prompt cache.")
    expect(page.locator("article.answer-live [data-text]")).not_to_be_empty()
    slow_model.hold()
    page.keyboard.press("Escape")
    answer = page.get_by_label("Answer", exact=True)
    # The demo model may have been faster than the key; tests/chat stops one that cannot be.
    expect(answer).to_contain_text(re.compile(r"\d+ tokens?"))
    expect(page.locator("article.answer-live")).to_have_count(0)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
