"""The chat page as a person uses it: branches, shared copies, the panel, drafts, files."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.chat.attachments.test_attachments import PNG
from tests.journeys.conftest import arrive
from tests.waiting import wait_in_page

pytestmark = pytest.mark.timeout(300)


def begin(page: Page, question: str) -> None:
    """A new conversation with its first answer."""
    page.goto("/chat/")
    page.get_by_label("Message", exact=True).fill(question)
    page.keyboard.press("Enter")
    arrive(page, r"/chat/\d+/")
    expect(page.locator("article.answer:not(.answer-live)")).to_have_count(1)


def test_edit_branch_delete_undo(page: Page) -> None:
    begin(page, "Hello!")
    page.get_by_label("Message", exact=True).press("ArrowUp")  # empty: the last question
    field = page.get_by_role("textbox", name="Edit message")
    expect(field).to_be_focused()
    field.fill("What is the prompt cache?")
    field.press("Enter")
    expect(page.get_by_label("Message 2 of 2")).to_be_visible()
    expect(page.locator("article.answer:not(.answer-live)")).to_have_count(1)
    page.get_by_label("Previous version").click()
    expect(page.locator(".question")).to_contain_text("Hello!")
    page.get_by_label("Next version").click()
    expect(page.locator(".question")).to_contain_text("What is the prompt cache?")
    page.get_by_label("Delete this message and everything after it").click()
    expect(page.locator(".question")).to_contain_text("Hello!")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.keyboard.press("Alt+z")
    expect(page.locator(".question")).to_contain_text("What is the prompt cache?")


def test_what_a_swap_brings_works_at_once(page: Page) -> None:
    """A key that is pressed while "Undo" appears undoes: no moment in which it does nothing."""
    begin(page, "Hello!")
    page.evaluate(
        """() => new MutationObserver((_, observer) => {
            const undo = document.querySelector("[data-undo]");
            if (undo) { observer.disconnect(); undo.click(); }
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    page.get_by_label("Delete this message and everything after it").click()
    expect(page.get_by_role("status").get_by_text("Messages restored.")).to_be_visible()
    expect(page.locator(".question")).to_contain_text("Hello!")


def test_a_copy_is_shared_from_the_menu_and_listed(page: Page) -> None:
    begin(page, "Hello!")
    page.locator("[data-menu] > summary").click()
    share = page.get_by_role("button", name="Share a read-only copy")
    option = page.locator("label", has_text="with the model’s thinking")
    above, below = share.bounding_box(), option.bounding_box()
    assert above
    assert below
    assert below["y"] >= above["y"] + above["height"]
    assert below["height"] < 40  # one line
    share.click()
    arrive(page, r"/chat/shared/")
    expect(page.locator(".bubble")).to_have_text("Hello!")
    page.go_back()
    page.locator("[data-menu] > summary").click()
    page.get_by_role("link", name="Shared copies").click()
    arrive(page, r"/settings/#shares")
    page.get_by_role("button", name="Stop sharing").first.click()


def test_the_panel_saves_at_once(page: Page) -> None:
    begin(page, "Hi")
    page.keyboard.press("Alt+m")
    panel = page.get_by_role("complementary", name="Chat settings")
    panel.get_by_label("Temperature").fill("0.3")
    panel.get_by_label("Min-p").focus()
    expect(panel.get_by_text("Saved.", exact=True)).to_be_visible()
    page.reload()  # the panel is open as before
    expect(panel.get_by_label("Temperature")).to_have_value("0.3")


def test_a_draft_outlives_its_tab(page: Page) -> None:
    page.goto("/chat/")
    page.get_by_label("Message", exact=True).fill("Half a thou")
    other = page.context.new_page()
    page.close()
    other.goto("/chat/")
    expect(other.get_by_label("Message", exact=True)).to_have_value("Half a thou")


def test_attach_paste_and_compare(page: Page, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("A kettle costs 12.")
    page.goto("/chat/")
    page.get_by_label("Files to attach").set_input_files(notes)
    chip = page.locator("[data-attachment]")
    expect(chip).to_contain_text(re.compile(r"notes\.txt.*18\sbytes\s+·\s+\d+ tokens", re.DOTALL))
    page.evaluate(
        """() => {
            const files = new DataTransfer();
            files.items.add(new File(["pasted"], "pasted.txt", { type: "text/plain" }));
            const paste = new ClipboardEvent("paste", { clipboardData: files, bubbles: true });
            document.querySelector("[data-composer] textarea").dispatchEvent(paste);
        }"""
    )
    expect(chip).to_have_count(2)
    page.get_by_label("Remove pasted.txt").click()
    expect(chip).to_have_count(1)
    page.get_by_label("Message", exact=True).fill("What is a kettle?")
    page.keyboard.press("Enter")
    arrive(page, r"/chat/\d+/")
    expect(page.locator("article.answer:not(.answer-live)")).to_have_count(1)
    expect(page.locator(".question .attachment")).to_contain_text("notes.txt")
    page.get_by_label("More actions").click()
    page.get_by_role("button", name="Use another model or preset…").click()
    page.get_by_role("button", name="Compare answers").click()
    expect(page.get_by_role("group", name="Answer comparison")).to_be_visible()
    expect(page.locator("article.answer:not(.answer-live)")).to_have_count(2)
    page.get_by_role("button", name="Keep this one").last.click()
    expect(page.get_by_label("Answer 2 of 2")).to_be_visible()
    expect(page.locator("article.answer")).to_have_count(1)
    picture = tmp_path / "cat.png"
    picture.write_bytes(PNG)
    page.get_by_label("Files to attach").set_input_files(picture)
    expect(chip).to_have_count(1)
    field = page.get_by_label("Message", exact=True)
    field.fill("Which cat?")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("does not support images")
    expect(field).to_have_value("Which cat?")
    page.reload()  # text and file wait
    expect(field).to_have_value("Which cat?")
    expect(chip).to_contain_text("cat.png")


def test_fields_of_answers_and_a_pin(page: Page) -> None:
    begin(page, "Hi")
    expect(page.locator(".meter-button")).to_be_visible()
    held: list[Route] = []
    page.route("**/structured_output.js", lambda route: held.append(route), times=1)
    page.keyboard.press("Alt+m")
    panel = page.get_by_role("complementary", name="Chat settings")
    panel.get_by_text("Structured output (JSON)").click()
    add = panel.get_by_role("button", name="Add field", exact=True)
    expect(add).to_be_disabled()  # its script is still to come
    wait_in_page(page, lambda: held)
    held[0].continue_()
    add.click()
    panel.get_by_label("Field name").fill("mood")
    expect(panel.get_by_text("Structured output on: 1 field.")).to_be_visible()
    page.reload()
    expect(panel.get_by_label("Field name")).to_have_value("mood")
    page.keyboard.press("Escape")
    page.locator("article.question").hover()
    pin = page.locator("article.question").get_by_label("Always keep in context")
    pin.click()
    expect(pin).to_have_attribute("aria-pressed", "true")
