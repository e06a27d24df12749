"""From a ready recipe to reviewed rows and a file; from weak labels to rows of them."""

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.timeout(300)

ENDED = re.compile(r"done|failed")


def queue(page: Page) -> None:
    page.get_by_role("button", name="Queue the job").click()
    expect(page).to_have_url(re.compile(r"/generate/\d+/$"))
    badge = page.get_by_role("region", name="Progress").locator(".badge").first
    expect(badge).to_have_text(ENDED, timeout=120_000)


def test_from_a_ready_recipe_to_a_file(page: Page) -> None:
    page.goto("/generate/")
    page.get_by_role("link", name=re.compile("Reviews by sentiment.*Short product")).click()
    page.get_by_label("Rows", exact=True).fill("12")
    cards = page.locator("[data-column]")
    expect(cards).to_have_count(3)
    cards.nth(0).get_by_role("button", name="The same number of each").click()
    expect(cards.nth(0).locator("[data-quotas]")).to_have_value("positive = 6\nnegative = 6")

    # A column with a mistake says so while one types.
    page.get_by_role("button", name="Expression", exact=True).click()
    expression = cards.nth(3).get_by_label("Expression", exact=True)
    expression.fill("produkt ~ '!'")
    expression.blur()
    expect(cards.nth(3)).to_contain_text("Did you mean “product”?")
    expression.fill("product ~ '!'")
    expect(cards.nth(3).locator("[data-problem]")).to_be_empty()

    page.get_by_label("Near duplicates from (%)").fill("95")
    page.get_by_role("button", name="Try 3 rows").click()
    expect(page.locator(".previews li")).to_have_count(3)
    expect(page.locator(".estimate")).to_contain_text("12 rows")
    queue(page)
    progress = page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text("12 of 12 rows")

    page.get_by_role("link", name="Review one by one").click()
    review = page.get_by_role("region", name="Row under review")
    heading = review.get_by_role("heading").first
    expect(heading).to_have_text("Row 1")
    page.keyboard.press("a")
    expect(heading).not_to_have_text("Row 1")
    rejected = heading.inner_text()
    page.keyboard.press("r")
    expect(heading).not_to_have_text(rejected)
    page.keyboard.press("e")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Edited by hand.")
    page.get_by_role("button", name="Save the changes").click()
    expect(review).to_contain_text("It was:")

    page.get_by_role("navigation").get_by_role("link", name="Generate").click()
    page.get_by_role("link", name="Reviews by sentiment").first.click()
    use = page.get_by_role("link", name="CSV for spreadsheets")
    with page.expect_download() as download:
        use.click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 11  # one was rejected by hand
    assert sum(row["text"] == "Edited by hand." for row in rows) == 1
    assert all(row["expression"] == f"{row['product']}!" for row in rows)
    with page.expect_download() as download:
        page.get_by_role("link", name="Data card").click()
    card = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert card["counts"]["accepted"] == 11
    assert card["edited_by_hand"] == 1


def a_dataset(page: Page) -> str:
    """The key of a dataset: one that is there already, else the example."""
    page.goto("/datasets/")
    main = page.get_by_role("main")
    example = main.get_by_role("button", name="Try it with an example")
    if example.count():
        example.first.click()
        expect(page).to_have_url(re.compile(r"dataset=\d+"))
        address = page.url
    else:
        links = main.locator("a[href^='/datasets/']").evaluate_all(
            "links => links.map(link => link.pathname)"
        )
        address = next(link for link in links if re.fullmatch(r"/datasets/\d+/", link))
    found = re.search(r"(?:dataset=|/datasets/)(\d+)", address)
    assert found, address
    return found[1]


def test_from_weak_labels_to_rows_of_them(page: Page) -> None:
    page.goto(f"/generate/new/?dataset={a_dataset(page)}&rows=6")
    cards = page.locator("[data-column]")
    expect(cards).to_have_count(3)
    page.get_by_label("Most tokens an answer").fill("60")
    queue(page)
    # Done with all it was asked for, or honest about why not.
    progress = page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text(re.compile(r"6 of 6 rows|Stopped with \d of 6 rows"))
    page.get_by_role("button", name="Measure").click()
    diversity = page.get_by_role("region", name="Diversity")
    expect(diversity).to_contain_text(re.compile("seed rows|nothing to compare"))
