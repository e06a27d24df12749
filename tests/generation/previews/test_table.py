"""The preview as a table."""

import pytest

from apps.batch.handlers import RowOutcome, Verdict
from apps.generation.previews.column_marks import column_marks
from apps.generation.previews.table import MAX_CELL, cell_text, preview_table
from apps.generation.recipe.parse import parse
from apps.generation.rows.generate_row import GeneratedRow
from apps.generation.rows.preview import Preview
from apps.generation.rows.row_steps import Row, RowRequest

RECIPE = parse(
    {
        "columns": [
            {"name": "topic", "kind": "category", "values": ["login"]},
            {"name": "text", "kind": "text", "prompt": "About {{ topic }}."},
            {"name": "length", "kind": "expression", "expression": "text|length"},
            {"name": "reply", "kind": "text", "prompt": "Answer it."},
        ]
    }
)
MARKS = column_marks(RECIPE, 1, "")


def tried(reason: str = "", **values: object) -> Preview:
    messages = ({"role": "user", "content": "About login."},)
    requests = [RowRequest(RECIPE.requests[0], messages, 1)]
    row = Row(dict(values), "length" if reason else "", reason, values=values)  # type: ignore[arg-type]
    generated = GeneratedRow(row, requests, ["A raw reply."])
    verdict = Verdict.REJECTED if reason else Verdict.ACCEPTED
    return Preview(generated, RowOutcome(verdict, reason=reason))


def test_cells_stand_in_the_order_of_the_columns() -> None:
    table = preview_table(MARKS, [tried(topic="login", text="Hi.", length=3, reply="Yes.")])
    assert [heading.field for heading in table.headings] == ["topic", "text", "length", "reply"]
    [row] = table.rows
    assert [cell.text for cell in row.cells] == ["login", "Hi.", "3", "Yes."]
    assert [cell.is_number for cell in row.cells] == [False, False, True, False]
    assert row.turns == [("About login.", "A raw reply.")]


def test_the_rejected_column_says_why() -> None:
    table = preview_table(MARKS, [tried("“text”: Too short.", topic="login")])
    cells = {cell.heading.field: cell for cell in table.rows[0].cells}
    assert (cells["text"].reason, cells["text"].text) == ("Too short.", "A raw reply.")
    assert (cells["topic"].reason, cells["reply"].text) == ("", "")


def test_a_row_without_an_answer_has_no_cells() -> None:
    table = preview_table(MARKS, [Preview(None, None, "The server is not responding.")])
    assert table.rows[0].cells == []
    assert table.asked == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), ("a", "a"), (4, "4"), (True, "true"), (["é", 1], '["é", 1]'),
        ("x" * 3_000, "x" * MAX_CELL + "…"),
    ],
)  # fmt: skip
def test_text_of_a_cell(value: object, text: str) -> None:
    assert cell_text(value) == text
