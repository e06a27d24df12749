"""Rows labelled on a phone by touch, and with the keys of a desktop."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.timeout(300)

ROWS = 50
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def page_of_rows(page: Page, tmp_path: Path) -> Page:
    """The labelling page of 50 rows without a label and three with one each."""
    path = tmp_path / "inbox.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "source"])
        writer.writerows(
            [f"known {label}", label, "mail"] for label in ("billing", "login", "spam")
        )
        writer.writerows([f"message {n} about something", "", "crowd"] for n in range(ROWS))
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("checkbox", name="Keep unlabelled rows").check()
    page.get_by_role("button", name=re.compile("^Import")).click()
    page.get_by_role("link", name="Label rows").first.click()
    page.wait_for_url(re.compile("/label/"))
    return page


def test_fifty_rows_on_a_phone(page_of_rows: Page) -> None:
    page = page_of_rows
    page.set_viewport_size(PHONE)
    head = page.locator(".label-head")
    for number in range(ROWS):
        expect(head).to_contain_text(re.compile(rf"{3 + number}\s+of 53"))
        bar = page.locator(".label-bar").nth(number % 3)
        if number == 0:
            box = bar.bounding_box()
            assert box is not None
            assert box["height"] >= 48
            assert box["y"] > PHONE["height"] / 2  # above the thumb
        bar.click()
    expect(page.get_by_text("All rows are labelled")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".label-now")).to_contain_text("Unlabelled")


def test_a_typo_never_makes_a_label(page_of_rows: Page) -> None:
    page = page_of_rows
    text = page.locator(".label-text")
    page.keyboard.press("/")
    page.keyboard.type("traffic")
    expect(page.get_by_text("No label “traffic”")).to_be_visible()
    page.keyboard.press("Enter")
    expect(text).to_contain_text("message 0")
    page.keyboard.press("Shift+Enter")
    expect(text).to_contain_text("message 1")
    expect(page.locator(".label-bar").first).to_contain_text("traffic")
    page.keyboard.press("d")
    expect(text).to_contain_text("message 2")
    page.keyboard.press("z")
    expect(text).to_contain_text("message 1")
