"""From a trained classifier onwards: mend its labels and see it get better, put a chat model beside
it, label a file, take it along."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import arrive
from tests.stack import ROOT

pytestmark = pytest.mark.timeout(400)

DATA = ROOT / "bench" / "data"
LABELS = ["card_arrival", "lost_or_stolen_card", "exchange_rate"]
TEXTS_PER_LABEL = 24
TESTS_PER_LABEL = 30
POSTED = "When will my new card arrive? It is still not here"
TRAINING = 90_000  # milliseconds, on a busy machine

# In a chart ten wide and high: twice as near at a point, then as far away as can be.
MOVE_IN = """() => import("/static/charts/zoom.js").then(({View}) => {
  const view = new View({x: [0, 10], y: [0, 10], least: 2});
  view.zoom(0.5, {x: 4, y: 10});
  const near = [[...view.x], [...view.y]];
  view.zoom(99, {x: 0, y: 0});
  view.move({x: 5, y: 5});
  return [...near, view.x];
})"""


def texts_of(name: str, per_label: int) -> list[tuple[str, str]]:
    kept = dict.fromkeys(LABELS, 0)
    found = []
    with (DATA / f"banking77_{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if kept.get(row["label"], per_label) < per_label:
                kept[row["label"]] += 1
                found.append((row["text"], row["label"]))
    return found


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Questions to a bank with their split, half of those about cards labelled as about rates."""
    path = tmp_path / "mislabelled.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["text", "label", "split"])
        for place, (text, label) in enumerate(texts_of("train", TEXTS_PER_LABEL)):
            wrong = label == "card_arrival" and place < TEXTS_PER_LABEL // 2
            writer.writerow([text, "exchange_rate" if wrong else label, "train"])
        for text, label in texts_of("test", TESTS_PER_LABEL):
            writer.writerow([text, label, "test"])
    return path


def test_mend_compare_and_take_along(page: Page, questions: Path, tmp_path: Path) -> None:
    main = page.get_by_role("main")
    train(page, questions)
    # Tiles and pairs open their rows; Escape brings the focus back.
    tile = page.locator("a.tile:not(.tile-0)").first
    tile.click()
    panel = page.get_by_role("complementary", name="Test rows")
    expect(panel).to_contain_text("highest confidence first")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(tile).to_be_focused()

    # The queue finds the labels that are wrong; number keys give the right ones.
    go(page, "Improve")
    expect(main).to_contain_text("Likely label error")
    page.get_by_role("link", name=re.compile("Likely label error")).click()
    page.get_by_role("button", name=re.compile(r"Review \d+ rows?")).click()
    arrive(page, r"/datasets/\d+/label/\?queue=\d+")
    right = dict(texts_of("train", TEXTS_PER_LABEL))
    card = page.locator(".label-text")
    looked_at = page.locator("#labelling progress")
    mended = 0
    while card.is_visible():
        before = str(looked_at.get_attribute("value"))
        label = right[card.inner_text()]
        mended += label != page.locator(".label-now strong").inner_text()
        page.keyboard.press(str(page.locator(f'[data-label="{label}"]').get_attribute("data-key")))
        done = page.get_by_text("Queue complete")
        expect(done.or_(looked_at)).not_to_have_attribute("value", before)
    assert mended >= 4

    page.goto("/classify/")
    main.get_by_role("link", name="mislabelled", exact=True).click()
    page.get_by_role("button", name="Train again").click()
    expect(main).to_contain_text("Version 2 is live", timeout=TRAINING)

    # The two runs on the same test rows: the new one is better, by more than luck. Back, and on.
    go(page, "Ship", "Versions")
    expect(main).to_contain_text(re.compile(r"Version 2 is significantly better\s+.McNemar"))
    expect(main).to_contain_text("Based on 90 shared test rows")
    page.get_by_role("button", name="Make live").click()
    expect(page.get_by_text("Version 1 is now live")).to_be_visible()
    page.get_by_role("button", name="Make live").click()
    expect(page.get_by_text("Version 2 is now live")).to_be_visible()

    # A file: every row comes back.
    go(page, "Ship", "Label a file")
    sent = tmp_path / "new.csv"
    sent.write_text(f"question\n{POSTED}\n=1+1\n", encoding="utf-8")
    page.locator("input[type=file]").set_input_files(sent)
    page.get_by_role("button", name="Label file").click()
    with page.expect_download(timeout=TRAINING) as download:
        page.get_by_role("link", name="Download").click(timeout=TRAINING)
    with download.value.path().open(encoding="utf-8-sig", newline="") as file:
        labelled = list(csv.DictReader(file))
    assert [row["text"] for row in labelled] == [POSTED, "'=1+1"]
    assert labelled[0]["label"] == "card_arrival"

    # The thresholds: nothing is certain enough for 100 %.
    go(page, "Decide")
    expect(page.locator("[data-chart=decide] canvas").first).to_be_visible()
    page.get_by_role("button", name="Balanced").click()
    expect(page.locator("#point")).to_contain_text("Balanced:")
    page.get_by_label("Strictness").press("ArrowRight")
    expect(page.locator("#point")).to_contain_text("Custom:")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("button", name="Save thresholds")).to_be_disabled()
    page.get_by_label("All other labels").fill("1")
    expect(page.locator("[data-declined]")).to_have_text(re.compile(r"^\d+ of 72 training rows"))
    page.get_by_role("button", name="Save thresholds").click()
    expect(page.get_by_text("Thresholds saved")).to_be_visible()
    go(page, "Results")
    arrive(page, r"/classify/\d+/$")
    page.get_by_role("textbox", name="Text").fill(POSTED)
    expect(page.get_by_test_id("prediction")).to_contain_text("Unsure.")
    assert page.evaluate(MOVE_IN) == [[2, 7], [5, 10], [0, 10]]

    go(page, "Improve", "Map")
    expect(page.locator("[data-map-count]")).to_have_text("162 texts")
    page.get_by_label("Colour by").select_option("Correct or wrong")
    expect(page.locator("[data-map-key]")).to_contain_text("correct")
    page.get_by_role("list", name="Highlight a label").get_by_role("button").first.click()
    expect(page.locator("[data-map-key]")).to_contain_text("this label (")
    go(page, "Ship")
    with page.expect_download(timeout=TRAINING) as download:  # a worker may still be at it
        page.get_by_role("link", name="Download .zip").click(timeout=TRAINING)
    assert download.value.path().read_bytes()[:2] == b"PK"


def test_chat_model_is_compared_with_the_classifier(page: Page, questions: Path) -> None:
    main = page.get_by_role("main")
    train(page, questions)
    go(page, "Ship", "Chat model")
    page.get_by_label("Test rows").fill("6")
    page.get_by_role("button", name="Start comparison").click()
    counted = main.get_by_role("columnheader", name="6 test rows")
    expect(counted).to_be_visible(timeout=TRAINING)
    expect(page.get_by_role("row", name=re.compile("The chat model"))).to_contain_text("%")


def go(page: Page, tab: str, part: str = "") -> None:
    tabs = page.get_by_role("navigation", name="mislabelled")
    tabs.get_by_role("link", name=tab, exact=True).click()
    expect(tabs.locator("[aria-current]")).to_have_text(tab)
    if part:
        page.get_by_role("navigation", name=tab).get_by_role("link", name=part).click()


def train(page: Page, file: Path) -> None:
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(file)
    expect(page).to_have_url(re.compile(r"/datasets/uploads/"))
    page.get_by_role("button", name=re.compile("^Import .*row")).click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    page.get_by_role("link", name="Train a classifier").click()
    page.get_by_role("button", name="Train classifier").click()
    expect(page).to_have_url(re.compile(r"/classify/\d+/"))
    expect(page.get_by_role("main")).to_contain_text("Tested on 90 held-out rows", timeout=TRAINING)
