"""From a confusion of a classifier to rows of it, and what they are worth."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import arrive
from tests.journeys.generate.editor import pick, queue, setting
from tests.stack import ROOT

pytestmark = pytest.mark.timeout(400)

DATA = ROOT / "bench" / "data"
LABELS = ("card_arrival", "card_delivery_estimate")
TRAINING = 90_000  # milliseconds, on a busy machine


def texts_of(name: str, label: str, count: int) -> list[str]:
    with (DATA / f"banking77_{name}.csv").open(encoding="utf-8", newline="") as file:
        found = [row["text"] for row in csv.DictReader(file) if row["label"] == label]
    return found[:count]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Two labels that are hard to tell apart, with some test rows that nobody could get right."""
    path = tmp_path / "post.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["text", "label", "split"])
        for at, label in enumerate(LABELS):
            writer.writerows([text, label, "train"] for text in texts_of("train", label, 12))
            for place, text in enumerate(texts_of("test", label, 8)):
                writer.writerow([text, LABELS[1 - at] if place < 2 else label, "test"])
    return path


def test_from_a_confusion_to_rows_of_it_and_what_they_are_worth(
    page: Page, questions: Path
) -> None:
    main = page.get_by_role("main")
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(questions)
    page.get_by_role("button", name=re.compile("^Import .*row")).click()
    page.get_by_role("link", name="Train a classifier").click()
    page.get_by_role("button", name="Train classifier").click()
    expect(main).to_contain_text("Tested on 16 held-out rows", timeout=TRAINING)

    page.get_by_role("link", name=re.compile("^Generate rows")).first.click()
    expect(page.locator("[data-column]")).to_have_count(3)
    setting(page, "How many", "Rows").fill("6")
    pick(page, 0)
    quotas = page.locator("[data-quotas]").first
    expect(quotas).to_have_value("\n".join(f"{label} = 3" for label in LABELS))
    quotas.fill(f"{LABELS[0]} = 4\n{LABELS[1]} = 4")  # as a person wants them, they stay
    expect(page.locator("[data-hint]").first).to_contain_text("add up to 8 rows, but the job has 6")
    page.get_by_role("button", name="Distribute over 6 rows").click()
    expect(quotas).to_have_value("\n".join(f"{label} = 3" for label in LABELS))
    setting(page, "Limits", "Max tokens").fill("60")
    queue(page)
    job = page.url
    progress = page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text("of 6 accepted")
    page.get_by_role("link", name="Quality").click()
    page.get_by_role("button", name="Measure diversity").click()
    diversity = page.get_by_role("region", name="Diversity", exact=True)
    expect(diversity).to_contain_text("seed rows")

    # The slider says at once what it would do, and nothing is lost.
    near = page.get_by_role("region", name="Near-duplicates")
    near.get_by_role("button", name="Compare rows").click()
    slider = near.get_by_role("slider")
    expect(near).to_contain_text("would be rejected")
    expect(near.locator("canvas")).to_be_visible()
    near.locator("#near-chart").press("ArrowRight")
    expect(near.locator(".chart-tip")).to_contain_text("below 50% similarity")
    slider.fill("50")
    said = near.locator("#near-status")
    expect(said).to_contain_text("accepted")
    slider.fill("101")
    expect(said).to_contain_text("No rows would be rejected")

    page.get_by_role("link", name="Use", exact=True).click()
    page.get_by_text("Test rows", exact=True).click()
    page.get_by_label("Real dataset (with test rows)").select_option(label="post (16 test rows)")
    page.get_by_role("button", name="Train 3 classifiers").click()
    verdict = re.compile("The synthetic rows (help|hurt)|No (clear |significant )?difference")
    expect(main.locator("#verdict")).to_contain_text(verdict, timeout=3 * TRAINING)
    table = page.get_by_role("region", name="Accuracy by training data").get_by_role("row")
    expect(table.nth(3)).to_contain_text("30")  # 24 real ones and 6 made ones
    expect(main).to_contain_text("F1 by label")

    # Back to the classifier whose mistakes began it: the rows are added, and it learns from them.
    page.goto(job)
    page.get_by_role("button", name=re.compile(r"Add \d+ rows and train")).click()
    arrive(page, r"/classify/\d+/")
    expect(page.locator("#toast")).to_contain_text("“post”: ")
    expect(main).to_contain_text("Tested on 16 held-out rows", timeout=TRAINING)
