"""A temporary chat: begun with a key, reloaded, kept, or deleted."""

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.journeys.axe import violations
from tests.journeys.conftest import arrive, in_browser
from tests.waiting import wait_in_page

pytestmark = pytest.mark.timeout(300)

SHORT = "deleted after you leave the page"


def switch(page: Page) -> Locator:
    return page.get_by_role("button", name="Temporary chat", exact=True)


def begin(page: Page, question: str) -> int:
    """Ask in a temporary chat on the page of a new one; return its key."""
    page.get_by_label("Message", exact=True).fill(question)
    page.keyboard.press("Enter")
    arrive(page, r"/chat/\d+/")
    expect(page.locator("article.answer:not(.answer-live)")).to_have_count(1)
    return int(page.url.rstrip("/").rpartition("/")[2])


def until(person: BrowserContext, key: int) -> str:
    found: str = in_browser(person, "get", f"/api/v1/conversations/{key}")["temporary_until"]
    return found


def test_begun_reloaded_and_kept(page: Page, person: BrowserContext) -> None:
    page.goto("/chat/")
    expect(switch(page)).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Alt+t")
    expect(switch(page)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("at the latest after 24 hours")).to_be_visible()
    key = begin(page, "What is macro F1?")
    expect(page.get_by_role("heading", name="Temporary chat")).to_be_visible()
    expect(page.get_by_text(SHORT)).to_be_visible()
    expect(page.locator(f"[data-row='{key}']")).to_have_count(0)
    whole = until(person, key)
    page.reload()
    expect(page.locator("article.answer")).to_have_count(1)
    wait_in_page(page, lambda: until(person, key) == whole)
    assert violations(page, "a temporary chat") == []

    page.get_by_label("Message", exact=True).fill("And accuracy?")
    assert "accuracy" not in page.evaluate("() => JSON.stringify(localStorage)")
    page.get_by_role("button", name="Keep this chat").click()
    expect(page.get_by_text("Chat kept.")).to_be_visible()
    expect(page.get_by_label("Title")).to_have_value("What is macro F1?")
    expect(page.locator(f"[data-row='{key}']")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("And accuracy?")
    assert until(person, key) is None


def test_left_and_deleted(page: Page, person: BrowserContext) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/chat/?temporary=1#new")
    expect(switch(page)).to_have_attribute("aria-pressed", "true")
    switch(page).click()
    switch(page).click()
    key = begin(page, "What is the prompt cache?")
    whole = until(person, key)
    page.goto("/settings/")
    wait_in_page(page, lambda: until(person, key) < whole)
    page.go_back()
    wait_in_page(page, lambda: until(person, key) == whole)
    page.locator("[data-menu] > summary").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Temporary chat deleted.")).to_be_attached()
    assert page.request.get(f"/chat/{key}/").status == 404


def test_from_another_page_the_key_opens_a_new_one(page: Page) -> None:
    page.goto("/chat/import/")
    page.keyboard.press("Alt+t")
    arrive(page, r"/chat/\?temporary=1")
    expect(switch(page)).to_have_attribute("aria-pressed", "true")
