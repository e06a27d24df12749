"""From a schema to a dataset to a classifier."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.timeout(300)

ROWS = 40


def test_schema_to_dataset_to_classifier(page: Page) -> None:
    main = page.get_by_role("main")
    page.goto("/generate/")
    page.get_by_role("link", name=re.compile("Reviews by sentiment")).click()
    page.get_by_label("Rows", exact=True).fill(str(ROWS))
    page.get_by_label("Largest number of characters").first.fill("120")

    page.get_by_role("button", name="Try 3 rows").click()
    previews = page.locator(".previews li")
    expect(previews).to_have_count(3)
    expect(previews.first).to_contain_text("label")

    page.get_by_role("button", name="Queue the job").click()
    expect(page).to_have_url(re.compile(r"/generate/\d+/"))
    progress = page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text(f"{ROWS} of {ROWS} rows", timeout=90_000)
    expect(progress).to_contain_text("done")

    page.reload()  # of a job that has ended it is open
    page.get_by_label("Label", exact=True).select_option("sentiment")
    page.get_by_role("button", name="Make the dataset", exact=True).click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    expect(page.get_by_role("region", name="Labels")).to_contain_text("negative")

    page.get_by_role("link", name="Train a classifier").click()
    page.get_by_role("button", name="Train", exact=True).click()
    expect(main).to_contain_text(re.compile(r"Judged on \d+ rows"), timeout=90_000)
