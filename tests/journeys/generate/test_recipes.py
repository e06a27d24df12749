"""From a ready recipe to reviewed rows and a file."""

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import arrive
from tests.journeys.generate.editor import pick, queue, setting
from tests.stack import ROOT

pytestmark = pytest.mark.timeout(400)

DATA = ROOT / "bench" / "data"
TRAINING = 90_000  # milliseconds, on a busy machine


def test_from_a_ready_recipe_to_a_file(page: Page) -> None:
    page.goto("/generate/")
    page.get_by_role("link", name=re.compile("Reviews by sentiment.*Short product")).click()
    cards = page.locator("[data-column]")
    expect(cards).to_have_count(3)  # drawn by the script: from here on it hears clicks
    setting(page, "How many", "Rows").fill("12")
    pick(page, 0)
    cards.nth(0).get_by_role("button", name="Split equally").click()
    expect(cards.nth(0).locator("[data-quotas]")).to_have_value("positive = 6\nnegative = 6")

    # A column with a mistake says so while one types.
    page.get_by_role("button", name="Add column", exact=True).click()
    page.get_by_role("option", name=re.compile("^Expression")).click()
    pick(page, 3)
    expression = cards.nth(3).get_by_label("Expression", exact=True)
    expression.fill("produkt ~ '!'")
    expression.blur()
    expect(cards.nth(3)).to_contain_text("Did you mean “product”?")
    expression.fill("product ~ '!'")
    expect(cards.nth(3).locator("[data-error=expression]")).to_be_empty()

    setting(page, "Reject", "Near-duplicates above (text, %)").fill("95")
    page.get_by_role("button", name="Try 3").click()
    expect(page.locator("table.tries tbody")).to_have_count(3)
    expect(page.locator("#estimate")).to_have_attribute("data-rows", "12")
    queue(page)
    progress = page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text("of 12 accepted")

    page.locator("#review-rows").click()
    arrive(page, r"/review/")
    review = page.get_by_role("region", name="Row under review")
    heading = review.get_by_role("heading", name=re.compile(r"^Row \d"))
    expect(heading).to_have_text("Row 1")
    page.keyboard.press("a")
    expect(heading).not_to_have_text("Row 1")
    rejected = heading.inner_text()
    page.keyboard.press("r")
    expect(heading).not_to_have_text(rejected)
    page.keyboard.press("z")
    expect(heading).to_have_text(rejected)
    page.keyboard.press("r")
    expect(heading).not_to_have_text(rejected)
    page.keyboard.press("ArrowLeft")
    expect(heading).to_have_text(rejected)
    expect(review).to_contain_text("Rejected by you.")
    page.keyboard.press("ArrowRight")
    expect(heading).not_to_have_text(rejected)
    page.keyboard.press("e")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Edited by hand.")
    page.get_by_role("button", name="Save changes").click()
    expect(review).to_contain_text("Original:")

    # The same with cards: what is rejected stays in sight and can be taken back.
    page.get_by_role("link", name="Back to the rows").click()
    states = page.get_by_role("navigation", name="Rows by state")
    states.get_by_role("link", name="All", exact=True).click()
    expect(states.get_by_role("link", name="All", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    page.get_by_role("link", name="Cards").click()
    arrive(page, r"/cards/")
    first, second = page.get_by_role("article").nth(0), page.get_by_role("article").nth(1)
    page.keyboard.press("ArrowRight")
    expect(first).to_be_focused()
    page.keyboard.press("r")
    expect(second).to_be_focused()
    expect(first).to_contain_text("Rejected by you.")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("a")
    expect(first).to_contain_text("Accepted")
    page.keyboard.press("e")
    expect(second.get_by_role("textbox").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(second.get_by_role("textbox")).to_have_count(0)

    jobs = page.get_by_role("navigation", name="Jobs")
    jobs.get_by_role("link", name="Reviews by sentiment").first.click()
    page.get_by_text("Download rows", exact=True).click()
    use = page.get_by_role("button", name="CSV (safe for spreadsheets)")
    with page.expect_download() as download:
        use.click()
    with Path(download.value.path()).open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 11  # one was rejected by hand
    assert sum(row["text"] == "Edited by hand." for row in rows) == 1
    assert all(row["expression"] == f"{row['product']}!" for row in rows)
    with page.expect_download() as download:
        page.get_by_role("link", name="Data card").click()
    card = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert card["counts"]["accepted"] == 11
    assert card["edited_by_hand"] == 1


def test_what_the_editor_has_no_field_for_is_kept_and_files_that_are_no_text_are_refused(
    page: Page, tmp_path: Path
) -> None:
    recipe = {
        "params": {"top_p": 0.9},
        "columns": [
            {"name": "doc", "kind": "seed", "text": "One.", "format": "document"},
            {
                "name": "text",
                "kind": "text",
                "prompt": "About {{ doc_text }}",
                "params": {"stop": ["END"], "temperature": 0.5, "thinking": 700},
            },
        ],
    }
    page.goto("/generate/new/?recipe=blank")
    expect(page.get_by_label("Model", exact=True)).to_contain_text("Default (")
    page.get_by_role("button", name="Edit as JSON").click()
    page.get_by_label("Recipe as JSON").fill(json.dumps(recipe))
    page.get_by_role("button", name="Edit as JSON").click()
    cards = page.locator("[data-column]")
    expect(cards).to_have_count(2)
    pdf = tmp_path / "paper.pdf"
    pdf.write_bytes(b"%PDF-1.4 1 0 obj")
    pick(page, 0)
    cards.nth(0).locator("input[type=file]").set_input_files(pdf)
    expect(cards.nth(0)).to_contain_text("“paper.pdf” is a PDF file, not text.")
    expect(cards.nth(0).get_by_label("Rows", exact=True)).to_have_value("One.")
    page.get_by_label("Job name").fill("Kept params")
    setting(page, "How many", "Rows").fill("1")
    setting(page, "System prompt", "Thinking").select_option("1024")
    queue(page)
    page.get_by_role("link", name="New job like this").first.click()
    arrive(page, r"/generate/new/")
    expect(page.locator("#id_thinking")).to_have_value("1024")
    page.get_by_role("button", name="Edit as JSON").click()
    shown = json.loads(page.get_by_label("Recipe as JSON").input_value())
    assert shown["params"] == {"top_p": 0.9}
    kept = {"stop": ["END"], "temperature": 0.5, "thinking": 700}
    assert shown["columns"][1]["params"] == kept
