"""A project with a document, and an examined server."""

from playwright.sync_api import Page, expect

from tests.journeys.conftest import arrive

HANDBOOK = """# Tea house handbook

Green tea is brewed at 70 degrees for two minutes, black tea at 95 degrees for four.

## Invoices

Invoices are kept for eight years. Paper originals are scanned within five days.
"""


def make_project(page: Page) -> tuple[str, str]:
    """The addresses of a project and of its document."""
    page.goto("/chat/projects/")
    page.locator("#project-name").fill("Tea house")
    page.get_by_role("button", name="Create project").click()
    arrive(page, r"/chat/projects/\d+/")
    project = page.url
    handbook = {"name": "Handbook.md", "mimeType": "text/markdown", "buffer": HANDBOOK.encode()}
    page.locator("[data-document-files]").set_input_files(handbook)  # type: ignore[arg-type]
    row = page.get_by_role("article", name="Handbook.md")
    expect(row).to_contain_text("passage", timeout=60_000)
    return project, str(row.get_by_role("link", name="Handbook.md").get_attribute("href"))


def examine(page: Page, server: object = 1) -> None:
    """Have the doctor examine a server."""
    page.goto(f"/servers/{server}/doctor/")
    page.get_by_role("button", name="Examine").click()
    running = page.get_by_role("region", name="Running examination")
    expect(running).to_be_visible(timeout=60_000)
    expect(running).to_be_hidden(timeout=300_000)
