"""What a person does in the recipe editor."""

import re

from playwright.sync_api import Locator, Page, expect

ENDED = re.compile(r"Done|Failed")


def queue(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Start")).click()
    expect(page).to_have_url(re.compile(r"/generate/\d+/$"))
    expect(page.locator("#job-tag")).to_have_text(ENDED, timeout=120_000)


def pick(page: Page, at: int) -> None:
    """Open a column in the middle of the editor."""
    page.locator("#column-list [data-pick]").nth(at).click()


def setting(page: Page, group: str, label: str) -> Locator:
    """A field of a group of settings, opened."""
    page.get_by_role("button", name=re.compile(f"^{group}")).click()
    return page.get_by_role("region", name=group).get_by_label(label, exact=True)
