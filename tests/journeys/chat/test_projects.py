"""A project with documents as a person uses it."""

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.chat.attachments.test_attachments import pdf
from tests.chat.tools.tool_server import ToolServer
from tests.journeys.axe import violations
from tests.journeys.conftest import answered_by, arrive


def upload(page: Page, name: str, text: str) -> None:
    file = {"name": name, "mimeType": "application/pdf", "buffer": pdf(text)}
    page.locator("[data-document-files]").set_input_files(file)  # type: ignore[arg-type]
    row = page.get_by_role("article", name=name)
    expect(row).to_contain_text("1 passage", ignore_case=True)


def test_a_project_with_two_pdfs_gives_a_cited_answer(page: Page, person: BrowserContext) -> None:
    page.goto("/chat/projects/")
    page.get_by_label("Name").fill("Invoice portal")
    page.get_by_role("button", name="Create project").click()
    arrive(page, r"/chat/projects/\d+/")
    upload(page, "Retention law.pdf", "Invoices are kept for eight years.")
    upload(page, "Handbook.pdf", "Paper originals are scanned within five days.")
    said = [[{"content": "Eight years [1] and five days [2]."}]]
    with ToolServer(said) as cites, answered_by(person, "Cites", cites.base_url, "caller"):
        page.get_by_role("link", name="New chat in this project").click()
        arrive(page, r"/chat/")
        page.get_by_label("Message", exact=True).fill("How long do we keep invoices?")
        page.keyboard.press("Enter")
        arrive(page, r"/chat/\d+/")
        answer = page.locator("article.answer:not(.answer-live)")
        expect(answer.locator(".prose .citation")).to_have_count(2)
        expect(answer.get_by_role("list", name="Sources").get_by_role("link")).to_have_count(2)
    read_sources(page, answer)


def read_sources(page: Page, answer: Locator) -> None:
    """Open, walk through and close the sources of an answer by mouse and keyboard."""
    panel = page.get_by_role("complementary", name="Source")
    first = answer.locator(".prose .citation").first
    first.click()
    expect(panel.locator("mark")).to_have_text("Invoices are kept for eight years.")
    expect(panel).to_be_focused()
    expect(first).to_have_attribute("aria-expanded", "true")
    panel.get_by_role("button", name="Next source").press("Enter")
    expect(panel.locator("mark")).to_contain_text("scanned within five days")
    expect(panel.get_by_role("button", name="Next source")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    assert violations(page, "a source") == []
    page.set_viewport_size({"width": 390, "height": 844})
    expect(panel.locator("mark")).to_be_in_viewport()
    panel.get_by_role("link", name="Open page 1").click()
    arrive(page, r"/chat/documents/\d+/#passage-0")
    expect(page.locator(".document-passage:target")).to_be_visible()
