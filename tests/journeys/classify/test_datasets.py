"""From a messy upload to clean labels: mend, label with the keyboard, undo."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import arrive

pytestmark = pytest.mark.timeout(300)

LONG_ROWS = 40_000  # more than is imported at once


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """As people have it: odd separator and encoding, two label columns, gaps, a broken row."""
    rows = [f"Wo ist Karte {n}?;Karte ;Ankunft;{n}" for n in range(12)]
    rows += [f"Grüße {n};gruß;;{n}" for n in range(11)]
    rows += ["Wo ist Karte 1?;karte;Ankunft;99", "Noch ohne;;;1", "Auch ohne;;;2", ";Karte;;3"]
    path = tmp_path / "fragen.csv"
    path.write_bytes("\r\n".join([" Frage ;Art;Unterart;id", *rows]).encode("cp1252"))
    return path


def test_messy_file_to_clean_labels(page: Page, messy: Path) -> None:
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(messy)
    arrive(page, r"/datasets/uploads/")
    expect(page.locator("#layout")).to_contain_text("semicolon, with a header, Windows-1252")
    expect(page.get_by_label("Use of Frage")).to_have_value("text")
    expect(page.get_by_label("Use of Art")).to_have_value("label")
    page.get_by_label("Use of Unterart").select_option("label2")
    expect(page.get_by_text("label joined as “Art / Unterart”")).to_be_visible()
    with page.expect_response(re.compile("/datasets/uploads/")):
        page.get_by_label("Use of id").select_option("ignore")
    # The layout is swapped then, and the row that has the focus with it.
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)
    page.get_by_label("Suspicious only").check()
    page.keyboard.press("j")
    expect(page.locator(".import-table tr:focus")).to_contain_text("No label, left out")
    page.get_by_role("button", name="Keep unlabelled rows").first.click()
    expect(page.locator(".import-bar")).to_contain_text("2 unlabelled, 1 left out")
    expect(page.get_by_label("Suspicious only")).to_be_checked()
    page.get_by_role("button", name=re.compile("^Import .*row")).click()

    arrive(page, r"/datasets/\d+/")
    expect(page.get_by_role("region", name="Rejected")).to_contain_text("The text is empty.")
    report = page.get_by_role("region", name="Data checks")
    expect(report).to_contain_text("differ only in case or spacing")
    report.get_by_role("button", name="Merge").click()
    expect(page.get_by_role("status")).to_contain_text("You can undo this")
    expect(report).not_to_contain_text("differ only in case")

    page.get_by_role("link", name="Label rows").click()
    arrive(page, r"/label/")
    text = page.locator(".label-text")
    expect(text).to_have_text("Noch ohne")
    page.keyboard.press("1")
    expect(text).to_have_text("Auch ohne")
    page.keyboard.press("z")
    expect(text).to_have_text("Noch ohne")
    page.keyboard.press("s")
    expect(text).to_have_text("Auch ohne")
    page.keyboard.press("/")
    page.keyboard.type("gru")
    page.keyboard.press("Enter")
    expect(text).to_have_text("Noch ohne")
    # What is no label yet is made by a choice of its own: a slip of a key makes none.
    page.keyboard.press("/")
    page.keyboard.type("grusz")
    expect(page.get_by_role("button", name="Create label grusz")).to_be_visible()
    page.keyboard.press("Enter")
    expect(text).to_have_text("Noch ohne")
    page.keyboard.press("Shift+Enter")
    expect(page.get_by_role("heading", name="All rows are labelled")).to_be_visible()
    page.get_by_role("link", name="Back to the dataset").click()
    arrive(page, r"/datasets/\d+/$")

    # One label in the table, and back with the keyboard.
    first = page.get_by_label("Label of row 1", exact=True)
    first.fill("something new")
    first.press("Enter")
    summary = page.locator("#summary")
    expect(summary).to_contain_text("to “something new”")
    expect(page.locator("#label-list")).to_contain_text("something new")
    page.locator("h1").click()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("status")).to_contain_text("Undone")
    expect(first).not_to_have_value("something new")

    # Searching keeps the address, so that a reload shows the same.
    page.get_by_label("Search texts").fill("grüße 1")
    expect(page.locator(".examples tbody tr")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"\?q=gr"))
    page.reload()
    expect(page.locator(".examples tbody tr")).to_have_count(2)
    page.get_by_label("Select all rows on this page").check()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("2 rows deleted")
    page.get_by_role("link", name=re.compile("Version")).click()
    expect(page.get_by_role("table")).to_contain_text("2 rows deleted")


def test_a_large_file_comes_in_behind_the_page(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(
        "".join(
            f'{{"text": "Row {n} asks where the parcel is that was sent", "label": "l{n % 9}"}}\n'
            for n in range(LONG_ROWS)
        )
    )
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name=re.compile("^Import .*row")).click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/$"), timeout=120_000)
    expect(page.get_by_role("status")).to_contain_text("40,000 rows imported")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#examples")).to_contain_text("Rows 51 to 100 of 40,000")


def test_roles_stay_within_their_columns(page: Page, tmp_path: Path) -> None:
    """As of rated answers, which Chat exports."""
    columns = ("prompt", "answer", "rating", "note", "model", "server")
    row = dict.fromkeys(columns, "up") | {"answer": "A long answer. " * 30}
    path = tmp_path / "ratings.jsonl"
    path.write_text("\n".join([json.dumps(row)] * 3))
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(path)
    arrive(page, r"/datasets/uploads/")
    expect(page.get_by_label("Use of rating")).to_be_visible()
    left = page.locator(".import-table th").evaluate_all(
        """all => all.slice(1).map((cell) => cell.getBoundingClientRect().right
            - cell.querySelector("select").getBoundingClientRect().right)"""
    )
    assert len(left) == len(columns)
    assert min(left) >= 0
