"""From a schema to a dataset to a classifier."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import in_browser

pytestmark = pytest.mark.timeout(300)

ROWS = 40
ANYTHING = re.compile(".")
# The browser's own notifications, which say to the page what they show.
RECORD = """
window.Notification = class extends Notification {
  constructor(title, options) {
    super(title, options);
    const { dataset } = document.documentElement;
    dataset.told = `${dataset.told ?? ""}${title}: ${options.body};`;
  }
};
"""
ENDLESS = {
    "name": "A long job",
    "rows": 50_000,
    "recipe": {"prompt": "Write a review of a kettle.", "params": {"max_tokens": 200}},
}


def test_schema_to_dataset_to_classifier(page: Page) -> None:
    main = page.get_by_role("main")
    page.goto("/generate/")
    page.get_by_role("link", name=re.compile("Reviews by sentiment")).click()
    page.get_by_label("Maximum length in characters").first.fill("120")
    page.get_by_role("button", name=re.compile("^How many")).click()
    page.get_by_label("Rows", exact=True).fill(str(ROWS))

    page.get_by_role("button", name="Try 3").click()
    expect(page.locator("table.tries tbody")).to_have_count(3)
    expect(page.get_by_role("columnheader", name="label")).to_be_visible()

    page.get_by_role("button", name=f"Start {ROWS} rows").click()
    expect(page).to_have_url(re.compile(r"/generate/\d+/"))
    progress = page.get_by_role("region", name="Progress")
    expect(progress.locator("#accepted")).to_have_text(f"{ROWS}", timeout=90_000)
    expect(page.locator("#job-tag")).to_have_text("Done", timeout=30_000)

    page.reload()  # a job that has ended opens on what can be done with it
    page.get_by_text("Choose dataset").click()
    page.get_by_label("Label", exact=True).select_option("sentiment")
    page.get_by_role("button", name="Create dataset", exact=True).click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    expect(page.get_by_role("region", name="Labels")).to_contain_text("negative")

    page.get_by_role("link", name="Train a classifier").click()
    page.get_by_role("button", name="Train classifier").click()
    expect(main).to_contain_text(re.compile(r"Tested on\s+\d+\s+held-out\s+rows"), timeout=90_000)


def test_notification_appears_when_a_job_has_ended(page: Page) -> None:
    page.context.grant_permissions(["notifications"])
    page.add_init_script(RECORD)
    job = in_browser(page.context, "post", "/api/v1/jobs", ENDLESS)
    page.goto(f"/generate/{job['id']}/")
    page.locator("#job-menu > summary").click()
    tell = page.get_by_role("button", name="Notify me")
    tell.click()
    expect(tell).to_be_hidden()
    seen = page.locator("#progress")
    expect(seen).to_have_attribute("data-status", "running")
    told = page.locator("html")
    expect(told).not_to_have_attribute("data-told", ANYTHING)  # it goes on
    in_browser(page.context, "post", f"/api/v1/jobs/{job['id']}/cancel")
    expect(told).to_have_attribute("data-told", ANYTHING)
    expect(seen).not_to_have_attribute("hx-trigger", ANYTHING)  # the last rows are closed
    once = re.compile(r"^A long job: cancelled: [\d,]+ of 50,000 rows;$")
    expect(told).to_have_attribute("data-told", once)
