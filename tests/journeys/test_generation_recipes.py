"""From a ready recipe to reviewed rows and a file; from a confusion to rows and what they do."""

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.journeys.conftest import arrive

pytestmark = pytest.mark.timeout(400)

DATA = Path(__file__).parent.parent.parent / "bench" / "data"
LABELS = ("card_arrival", "card_delivery_estimate")
TRAINING = 90_000  # milliseconds, on a busy machine
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


def test_from_a_ready_recipe_to_a_file(page: Page) -> None:
    page.goto("/generate/")
    page.get_by_role("link", name=re.compile("Reviews by sentiment.*Short product")).click()
    setting(page, "How many", "Rows").fill("12")
    cards = page.locator("[data-column]")
    expect(cards).to_have_count(3)
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
    page.get_by_role("button", name="Import rows").click()
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
