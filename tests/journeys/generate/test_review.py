"""Rows reviewed with one key each, and by touch."""

import re

import pytest
from playwright.sync_api import Page, expect

from bench.generation.job_pages import made_in
from tests.stack import Stack

pytestmark = pytest.mark.timeout(300)

ROWS = 80
KEYS = 50


@pytest.fixture(scope="module")
def job(stack: Stack) -> int:
    return made_in(stack, ROWS)


def unreviewed(page: Page) -> int:
    """How many rows the page says are unreviewed."""
    said = re.search(r"1 of (\d+)", page.locator("#review-place").inner_text())
    assert said is not None
    return int(said[1])


def rejected(page: Page, job: int) -> int:
    page.goto(f"/generate/{job}/rows/?status=rejected")
    return page.locator("[data-row]").count()


def test_fifty_rows_with_fifty_keys_and_one_undo(page: Page, job: int) -> None:
    before = rejected(page, job)
    page.goto(f"/generate/{job}/review/?status=unseen&sort=low:quality")
    count = unreviewed(page)
    row = page.locator(".review-row")
    for number in range(KEYS):
        index = row.get_attribute("data-index")
        page.keyboard.press("r" if number % 10 == 0 else "a")
        # The next row is there before the server has answered.
        expect(row).not_to_have_attribute("data-index", index or "")
    expect(page.locator("#review-place")).to_have_text(re.compile(rf"^\s*{KEYS + 1} of {count}"))
    last = page.locator("#review-last")
    expect(last).to_have_text(re.compile(r"^Row [\d,]+ accepted$"))
    taken_back = row.get_attribute("data-index")
    page.keyboard.press("z")
    expect(row).not_to_have_attribute("data-index", taken_back or "")
    expect(last).to_have_text(re.compile(r"^Row [\d,]+ restored$"))
    expect(page.locator("#review")).to_have_attribute("data-pending", "0")
    page.goto(f"/generate/{job}/review/?status=unseen")
    assert unreviewed(page) == count - KEYS + 1
    assert rejected(page, job) == before + KEYS // 10


def test_an_edit_is_saved_and_accepted_with_the_keyboard(page: Page, job: int) -> None:
    page.goto(f"/generate/{job}/review/?status=unseen")
    row = page.locator(".review-row")
    index = row.get_attribute("data-index")
    page.keyboard.press("e")
    page.keyboard.press("Escape")
    expect(page.locator(".review-edit")).to_be_hidden()
    page.keyboard.press("e")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Rewritten by hand, a and r are letters here.")
    page.keyboard.press("ControlOrMeta+Enter")
    expect(row).not_to_have_attribute("data-index", index or "")
    page.goto(f"/generate/{job}/review/?status=unseen&at={index}")
    expect(page.locator(".review-text")).to_have_text(re.compile("^Rewritten by hand"))
    expect(row).to_contain_text("Original: Since Monday")
    expect(row).to_contain_text("Reviewed")


def test_a_swipe_decides_on_a_phone(page: Page, job: int) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/generate/{job}/review/?status=unseen")
    accept = page.locator("#do-accept")
    expect(accept).to_be_in_viewport()
    box = accept.bounding_box()
    assert box is not None
    assert box["height"] >= 52
    row = page.locator(".review-row")
    index = row.get_attribute("data-index")
    page.evaluate(SWIPE_LEFT)
    expect(row).not_to_have_attribute("data-index", index or "")
    expect(page.locator("#review")).to_have_attribute("data-pending", "0")
    page.goto(f"/generate/{job}/review/?status=rejected&at={index}")
    expect(row).to_contain_text("Rejected by you.")


SWIPE_LEFT = """() => {
  const target = document.querySelector(".review-main");
  const at = (clientX) => new Touch({identifier: 1, target, clientX, clientY: 200});
  const send = (name, touches, changedTouches) =>
    target.dispatchEvent(new TouchEvent(name, {bubbles: true, touches, changedTouches}));
  send("touchstart", [at(300)], [at(300)]);
  send("touchend", [], [at(80)]);
}"""
