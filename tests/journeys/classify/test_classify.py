"""From a CSV to a prediction."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.stack import ROOT

pytestmark = pytest.mark.timeout(300)

EXAMPLES = ROOT / "bench" / "data" / "banking77_train.csv"
LABELS = ["card_arrival", "lost_or_stolen_card", "exchange_rate"]
TEXTS_PER_LABEL = 30


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Real questions to a bank, as a person might have them: odd header names, one bad row."""
    kept = dict.fromkeys(LABELS, 0)
    path = tmp_path / "questions.csv"
    with EXAMPLES.open(encoding="utf-8", newline="") as source, path.open("w", newline="") as out:
        writer = csv.writer(out, delimiter=";")
        writer.writerow([" Question ", "Intent"])
        writer.writerow(["", "card_arrival"])
        for row in csv.DictReader(source):
            if kept.get(row["label"], TEXTS_PER_LABEL) < TEXTS_PER_LABEL:
                kept[row["label"]] += 1
                writer.writerow([row["text"], row["label"]])
    return path


def test_csv_to_prediction(page: Page, questions: Path) -> None:
    main = page.get_by_role("main")
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(questions)
    expect(page).to_have_url(re.compile(r"/datasets/uploads/"))
    expect(page.get_by_label("Use of Question")).to_have_value("text")
    expect(page.get_by_label("Use of Intent")).to_have_value("label")
    expect(main).to_contain_text("semicolon")
    page.get_by_role("button", name=re.compile("^Import .*row")).click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    expect(page.get_by_role("region", name="Rejected")).to_contain_text("2")

    page.get_by_role("link", name="Train a classifier").click()
    page.get_by_role("button", name="Train classifier").click()
    expect(page).to_have_url(re.compile(r"/classify/\d+/"))
    expect(main).to_contain_text("Tested on 18 held-out rows", timeout=90_000)
    page.get_by_role("textbox", name="Text").fill("My card still has not come in the post")
    likeliest = page.get_by_test_id("prediction").locator(".bar").first
    expect(likeliest).to_contain_text("card_arrival")

    # What is tried stays while another version is trained, and so does the live one.
    page.get_by_role("button", name="Train again").click()
    expect(main).to_contain_text("Version 2 is being trained")
    page.get_by_role("textbox", name="Text").fill("My card still has not come in the post")
    expect(likeliest).to_contain_text("card_arrival")
    expect(main).to_contain_text("Version 2 is live", timeout=90_000)
    expect(page.get_by_role("textbox", name="Text")).to_have_value(re.compile("in the post"))
    page.get_by_role("link", name="Ship").click()
    page.get_by_role("link", name="Versions", exact=True).click()
    history = page.get_by_role("region", name="Versions", exact=True).get_by_role("row")
    expect(history).to_have_count(3)
    expect(history.nth(1)).to_contain_text("Live")
    expect(history.nth(1).get_by_role("cell").nth(6)).to_have_text("0")
