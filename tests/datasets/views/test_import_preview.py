"""The preview of an import: roles of columns, suspicious cells, and how many rows will come."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.datasets.imports import survey
from tests.datasets import factories

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
STRAY = b'text\tlabel\n"turn it down\ta\nquiet please\tb\nlower"\tc\nbye\ta\n'
CHOSEN = {"header": "names", "column": ["text", "label", "id"]}


def preview(
    browser: Client, owner: User, content: bytes, name: str = "rows.csv", **form: object
) -> str:
    path = f"/datasets/uploads/{factories.upload(owner, content, name).pk}/"
    answer = browser.get(path, form, headers=HTMX)
    assert answer.status_code == 200
    return answer.content.decode()


def warnings(page: str) -> list[str]:
    """Those of the suspicious rows; the first rows have them as well."""
    part = page[page.index('class="suspects"') :]
    return [" ".join(found.split()) for found in re.findall(r'class="cell-warning">([^<]+)<', part)]


def button(page: str) -> str:
    found = re.findall(r"<button class=\"button button-primary\"[^>]*>([^<]+)<", page)
    return " ".join(found[-1].split())


def test_each_suspicious_cell_says_what_is_wrong(browser: Client, alice: User) -> None:
    rows = b"text,label\n2,Weather\nwill it rain,weather\nhello there,\n,weather\nall,weather\n"
    page = preview(browser, alice, rows)
    assert warnings(page) == [
        "One character",
        "Also “weather” (2 rows)",
        "No label, left out",
        "No text, left out",
    ]
    assert "Suspicious only" in page
    assert button(page) == "Import 3 rows"


def test_ordinary_rows_are_not_marked(browser: Client, alice: User) -> None:
    page = preview(browser, alice, b"text,label\nhello there,a\ngood bye,b\n")
    assert "cell-warning" not in page
    assert "Suspicious only" not in page
    assert button(page) == "Import 2 rows"


def test_a_row_that_cannot_be_read_says_why(browser: Client, alice: User) -> None:
    page = preview(browser, alice, b"text,label\nhello there,a\nwell, well,b\n")
    assert warnings(page)[0].startswith("The row has 3 cells but the table has 2 columns.")
    assert button(page) == "Import 1 row"


def test_unlabelled_rows_come_with_the_fix_beside_them(browser: Client, alice: User) -> None:
    rows = b"text,label\nhello there,\ngood bye,b\n"
    chosen = {"header": "names", "column": ["text", "label"], "role": ["text", "label"]}
    assert "Keep unlabelled rows" in preview(browser, alice, rows, **chosen)
    page = preview(browser, alice, rows, **chosen, fix="unlabelled")
    assert warnings(page) == ["Imported without a label"]
    assert button(page) == "Import 2 rows"


def test_quotes_that_swallow_lines_can_be_plain_text(browser: Client, alice: User) -> None:
    chosen = {"header": "names", "column": ["text", "label"], "role": ["text", "label"]}
    page = preview(browser, alice, STRAY, "stray.tsv", **chosen, quoting="standard")
    said = " ".join(page.split())
    assert "5 lines, but only 2 rows.</strong> 2 lines are inside other cells" in said
    assert "Contains lines 2 to 4" in warnings(page)
    assert button(page) == "Fix quotes, import 4 rows"
    page = preview(browser, alice, STRAY, "stray.tsv", **chosen, quoting="standard", fix="quotes")
    assert "but only" not in page
    assert button(page) == "Import 4 rows"


def test_the_roles_of_columns_are_those_chosen(browser: Client, alice: User) -> None:
    page = preview(
        browser, alice, b"text,label,id\na b,c,1\n", **CHOSEN, role=["label", "text", "ignore"]
    )
    assert re.findall(r'<option value="(\w+)" selected', page)[-3:] == ["label", "text", "ignore"]
    page = preview(browser, alice, b"text,label,id\na b,c,1\n")
    assert re.findall(r'<option value="(\w+)" selected', page)[-3:] == ["text", "label", "keep"]


def test_rows_beyond_those_read_are_estimated(
    browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "MAX_ROWS", 10)
    content = b"text,label\n" + b"hello there,a\n" * 100
    assert button(preview(browser, alice, content)) == "Import about 92 rows"


def test_lines_are_those_of_the_file(browser: Client, alice: User) -> None:
    page = preview(browser, alice, b'text,label\n"two\nlines",a\n\nlast one,b\n')
    assert re.findall(r'<td class="number">\s*(\d+)', page) == ["2", "5"]
