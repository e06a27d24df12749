"""Imported chats: search and the palette, a very long one, formulas and code."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.timeout(300)


def bring_in(page: Page, file: Path) -> None:
    page.goto("/chat/import/")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()


def test_import_search_and_palette(page: Page, tmp_path: Path) -> None:
    said = {
        f"{n}": {"parentId": f"{n - 1}" if n else None, "role": ("user", "assistant")[n % 2],
                 "content": f"Part {n} of the samovar"}
        for n in range(60)
    }  # fmt: skip
    file = tmp_path / "chats.json"
    chat = {"title": "Tea", "history": {"messages": said, "currentId": "59"}}
    file.write_text(json.dumps([{"id": "tea", "chat": chat}]))
    bring_in(page, file)
    expect(page.get_by_text("1 chat with 60 messages imported.")).to_be_visible()
    page.wait_for_load_state()  # then its scripts hear keys
    page.keyboard.press("/")
    box = page.get_by_label("Search or type a command")
    box.fill("part 7 samovar")
    page.get_by_role("option").first.click()
    expect(page.locator("article.found")).to_be_in_viewport()
    expect(page.locator("article.found")).to_contain_text("Part 7 of")
    page.keyboard.press("Control+k")
    box.fill("keyboard")
    box.press("Enter")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    box.fill("samovar 42")
    expect(page.get_by_role("option").first).to_contain_text("Part 42")
    box.press("Enter")
    expect(page).to_have_url(re.compile(r"#question-\d+"))


def test_a_thousand_messages_stay_light(page: Page, tmp_path: Path) -> None:
    said = {
        f"{n}": {"parentId": f"{n - 1}" if n else None, "role": ("user", "assistant")[n % 2],
                 "content": f"Number {n}. " + "Some **words** to fill a line. " * 8}
        for n in range(1000)
    }  # fmt: skip
    file = tmp_path / "chats.json"
    chat = {"title": "Long", "history": {"messages": said, "currentId": "999"}}
    file.write_text(json.dumps([{"id": "long", "chat": chat}]))
    bring_in(page, file)
    page.get_by_role("link", name="Long", exact=True).click()
    expect(page.locator("article").last).to_be_in_viewport()
    laid_out = page.evaluate(
        "[...document.querySelectorAll('article')]"
        ".filter((e) => e.firstElementChild.checkVisibility({contentVisibilityAuto: true})).length"
    )
    assert laid_out < 100


def test_formulas_and_code(page: Page, tmp_path: Path) -> None:
    text = "So $x^2$:\n\n$$\n\\frac{1}{2}\n$$\n\n```python\nx = 1\n```"
    said = {
        "1": {"parentId": None, "role": "user", "content": "Formula?"},
        "2": {"parentId": "1", "role": "assistant", "content": text},
    }
    file = tmp_path / "chats.json"
    chat = {"title": "Formulas", "history": {"messages": said, "currentId": "2"}}
    file.write_text(json.dumps([{"id": "formulas", "chat": chat}]))
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    bring_in(page, file)
    expect(page.get_by_text("1 chat with 2 messages imported.")).to_be_visible()
    assert not any("katex" in url for url in fetched)
    page.get_by_role("link", name="Formulas", exact=True).click()
    expect(page.locator(".math-shown .katex")).to_have_count(2)
    page.locator("figure.code").hover()
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_visible()
