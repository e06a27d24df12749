"""The three-pane editor, by keyboard alone: from an empty recipe to a job."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import arrive

pytestmark = pytest.mark.timeout(300)

CHOSEN = ".column-item.is-chosen"
FORM = ".column-form:not([hidden])"
PROMPT = f"{FORM} [data-key=prompt]"


@pytest.fixture
def editor(page: Page) -> Page:
    page.goto("/generate/new/")
    page.get_by_role("link", name=re.compile("Blank recipe")).press("Enter")
    arrive(page, r"/generate/new/\?recipe=blank")
    expect(page.locator("#recipe")).to_have_attribute("data-ready", "")
    return page


def test_from_empty_to_started_by_keyboard(editor: Page) -> None:
    page, keys = editor, editor.keyboard
    rows, told = page.locator("table.tries tbody"), page.locator("#preview-told")
    page.get_by_label("Job name").focus()
    keys.type("By keyboard")

    # A column in front of the text: added, named, moved up from the list.
    keys.press("Escape")
    expect(page.locator(f"{CHOSEN} [data-pick]")).to_be_focused()
    keys.press("a")
    expect(page.get_by_role("combobox", name="Find a column type")).to_be_focused()
    keys.type("categ")
    keys.press("Enter")
    expect(page.get_by_label("Column name").last).to_be_focused()
    keys.type("topic")
    for _ in range(3):  # past Duplicate and Delete
        keys.press("Tab")
    keys.type("printer\nlogin")
    keys.press("Escape")
    keys.press("Alt+ArrowUp")
    names = page.locator("#column-list [data-item-name]")
    expect(names).to_have_text(["topic", "text"])

    # `{` offers it to the prompt.
    keys.press("ArrowDown")
    keys.press("Enter")
    keys.type("Write a support ticket about {to")
    offered = page.get_by_role("option", name="topic")
    expect(offered).to_be_visible()
    keys.press("Escape")
    expect(offered).to_be_hidden()
    prompt = page.locator(PROMPT)
    expect(prompt).to_be_focused()
    keys.type("p")
    keys.press("Enter")
    keys.type(".")
    expect(prompt).to_have_value("Write a support ticket about {{ topic }}.")

    keys.press("Escape")
    keys.press("t")
    expect(rows).to_have_count(3, timeout=60_000)
    expect(page.locator("#estimate")).to_contain_text("accepts")
    drawn = page.locator("td[data-field=topic]").all_inner_texts()

    # An edit: rows and drawn values stay, the text is out of date until it is tried again.
    keys.press("Enter")
    keys.press("ControlOrMeta+End")
    keys.type(" Be short.")
    head = page.get_by_role("columnheader", name=re.compile("^text"))
    expect(head).to_contain_text("changed")
    expect(page.locator("td.is-outdated")).to_have_count(3)
    expect(page.locator("#preview-hint")).to_contain_text("Only text is generated again.")
    keys.press("Escape")
    keys.press("t")
    expect(head).not_to_contain_text("changed", timeout=60_000)
    assert page.locator("td[data-field=topic]").all_inner_texts() == drawn
    keys.press("t")  # nothing changed: no request
    expect(told).to_contain_text("nothing to generate again")

    # How many is a group of settings below the columns.
    page.get_by_role("button", name=re.compile("^How many")).focus()
    keys.press("Enter")
    keys.press("Tab")
    page.get_by_label("Rows", exact=True).focus()
    keys.press("ControlOrMeta+a")
    keys.type("4")
    expect(page.locator("#start")).to_contain_text("Start 4 rows")
    keys.press("ControlOrMeta+Enter")
    arrive(page, r"/generate/\d+/")
    expect(page.get_by_role("main")).to_contain_text("By keyboard")


def test_the_first_wrong_field_is_opened_and_nothing_typed_is_lost(editor: Page) -> None:
    page, keys = editor, editor.keyboard
    page.get_by_label("Job name").fill("Wrong")
    prompt = page.locator(PROMPT)
    prompt.fill("About {{ topc }}")
    keys.press("Escape")
    keys.press("a")
    keys.type("number")
    keys.press("Enter")
    page.locator(f"{FORM} [data-key=min]").fill("9")
    page.locator(f"{FORM} [data-key=max]").fill("2")
    page.get_by_role("button", name=re.compile("^Limits")).click()
    keys.press("ControlOrMeta+Enter")
    expect(prompt).to_be_focused()
    expect(page.locator("[data-error=prompt]").first).to_contain_text("no column “topc”")
    prompt.fill("About a printer")

    keys.press("ControlOrMeta+Enter")
    smallest = page.locator(f"{FORM} [data-key=min]")
    expect(smallest).to_be_focused()
    expect(page.locator(f"{FORM} [data-error=min]")).to_be_visible()

    page.reload()
    expect(page.locator("#saved")).to_contain_text("Draft restored")
    expect(page.get_by_label("Job name")).to_have_value("Wrong")
    expect(page.locator("[data-column]")).to_have_count(2)
    page.get_by_role("button", name="Discard").click()
    expect(page.locator("[data-column]")).to_have_count(1)


def test_an_unknown_name_is_replaced_by_the_one_that_was_meant(editor: Page) -> None:
    page, keys = editor, editor.keyboard
    page.locator(f"{CHOSEN} [data-pick]").focus()
    keys.press("a")
    keys.type("text")
    keys.press("Enter")
    prompt = page.locator(PROMPT)
    prompt.fill("Shorten this: {{ txt }}")
    prompt.press("Escape")
    keys.press("ArrowUp")
    prompt.fill("Write a ticket.")  # of the column above; else its name counts as unknown, too
    keys.press("Escape")
    keys.press("ArrowDown")
    expect(page.locator(".variable-unknown")).to_have_count(1)
    page.get_by_role("button", name="Use “text”").click()
    expect(prompt).to_have_value("Shorten this: {{ text }}")
    expect(page.locator(".variable-unknown")).to_have_count(0)


def test_on_a_phone_the_panes_are_segments(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/generate/new/?recipe=tickets")
    page.get_by_role("button", name="Columns").click()
    page.locator("#column-list [data-pick]").first.click()
    expect(page.get_by_label("Values", exact=True)).to_be_visible()
    page.get_by_role("button", name="Columns").click()
    page.locator(".column-item.is-chosen .add-here").click()
    sheet = page.get_by_role("dialog", name="Add column").bounding_box()
    assert sheet is not None
    assert (sheet["x"], sheet["width"]) == (0, 390)
    assert sheet["y"] + sheet["height"] == pytest.approx(844, abs=1)
    page.get_by_role("option", name=re.compile("Date")).click()
    expect(page.get_by_label("Column name").nth(1)).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
