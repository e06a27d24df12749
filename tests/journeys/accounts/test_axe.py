"""What axe-core finds on the pages before the first work: by all rules, in all four looks."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.journeys.accounts.test_people import PASSWORD
from tests.journeys.axe import violations
from tests.journeys.conftest import PATIENCE, arrive
from tests.stack import Stack

pytestmark = pytest.mark.timeout(600)


def invitation(page: Page, name: str) -> str:
    page.goto("/settings/people/")
    page.get_by_role("button", name="Invite").click()
    page.get_by_role("dialog").get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create link").click()
    return page.get_by_test_id("link").inner_text()


def test_from_an_invitation_to_the_first_page(page: Page, stack: Stack, chromium: Browser) -> None:
    link = invitation(page, "erin")
    context = chromium.new_context(base_url=stack.url, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    erin = context.new_page()
    erin.goto(link)
    said = violations(erin, "the invitation")
    erin.get_by_label("New password", exact=True).fill(PASSWORD)
    erin.get_by_label("New password confirmation").fill(PASSWORD)
    erin.get_by_role("button", name="Set password and log in").click()
    arrive(erin, r"//[^/]+/$")
    expect(erin.get_by_role("heading", name="Workbench is ready")).to_be_visible()
    said += violations(erin, "the first page")
    erin.goto("/nowhere/")
    said += violations(erin, "a page that is not there")
    context.clear_cookies()
    erin.goto(link)
    said += violations(erin, "an invitation that was used")
    context.close()
    assert not said, "\n".join(said)


def test_the_documentation_of_the_api(page: Page) -> None:
    page.goto("/api/v1/docs")
    for method in ("get", "post", "put", "patch", "delete"):
        operation = page.locator(f".opblock-{method}").first
        operation.locator(".opblock-summary-control").click()
        expect(operation.locator(".opblock-body")).to_be_visible()
    said = violations(page, "/api/v1/docs")
    assert not said, "\n".join(said)
