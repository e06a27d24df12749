"""JSON as pandas, Label Studio and chat programs write it: lists, and fields inside fields."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps import files
from apps.datasets.models import Dataset
from apps.files import ColumnMapping, ExampleRow, FileKind, FormatError, RejectedRow

ROWS = [{"text": "hello", "label": "a", "n": 1}, {"text": "bye", "label": "b", "n": None}]
LABEL_STUDIO = [
    {
        "id": n,
        "data": {"text": text, "source": "mail"},
        "annotations": [{"id": n, "result": [{"type": "choices", "value": {"choices": [label]}}]}],
        "created_at": "2026-11-01",
    }
    for n, (text, label) in enumerate([("hello there", "greeting"), ("bye now", "farewell")])
]
CHAT = [
    {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]}
    for text in ("first question", "second question")
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "upload"


def read(path: Path, mapping: ColumnMapping | None = None) -> list[ExampleRow | RejectedRow]:
    layout = files.detect_layout(path)
    return list(
        files.read_checked_rows(path, layout, mapping or files.detect_mapping(path, layout))
    )


def pairs(rows: list[ExampleRow | RejectedRow]) -> list[tuple[str, str]]:
    return [(row.text, row.label) for row in rows if isinstance(row, ExampleRow)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("wrapped", "inside"),
    [(ROWS, ""), ({"data": ROWS}, "data"), ({"v": "1", "a": {"rows": ROWS}}, "a.rows"),
     ({"sizes": [1, 2], "rows": ROWS, "end": 1}, "rows")],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_list_of_rows(
    file: Path, wrapped: Any, inside: str, indent: int | None, encoding: str
) -> None:
    if inside == "rows" and not indent:
        wrapped = wrapped | {"sizes": 2}
    if inside == "a.rows" and not indent:
        wrapped = {"a": {"rows": ROWS}, "rows": [{}]} | {"rows": 1}
        indent = 1
    file.write_text(json.dumps(wrapped, indent=indent), encoding=encoding)
    layout = files.detect_layout(file)
    assert (layout.kind, layout.list_path, layout.columns) == (
        FileKind.JSON,
        inside,
        ("text", "label", "n"),
    )
    rows = read(file)
    assert pairs(rows) == [("hello", "a"), ("bye", "b")]
    assert isinstance(rows[0], ExampleRow)
    assert (rows[0].meta, rows[0].origin) == ({"n": "1"}, "row 1")
    assert files.estimate_rows(file, layout) >= 2


def test_a_list_of_texts(file: Path) -> None:
    file.write_text('["one", "two", 3, ["x"]]')
    rows = read(file)
    assert [row.text for row in rows if isinstance(row, ExampleRow)] == ["one", "two"]
    assert [row.row for row in rows if isinstance(row, RejectedRow)] == [3, 4]


def test_a_label_studio_export(file: Path) -> None:
    file.write_text(json.dumps(LABEL_STUDIO))
    layout = files.detect_layout(file)
    mapping = files.detect_mapping(file, layout)
    assert mapping == ColumnMapping("data.text", "annotations.0.result.0.value.choices.0")
    assert pairs(read(file)) == [("hello there", "greeting"), ("bye now", "farewell")]


@pytest.mark.parametrize("as_lines", [True, False])
def test_chats(file: Path, as_lines: bool) -> None:
    lines = "\n".join(map(json.dumps, CHAT))
    file.write_text(lines if as_lines else json.dumps(CHAT))
    layout = files.detect_layout(file)
    assert layout.kind is (FileKind.JSONL if as_lines else FileKind.JSON)
    assert "messages.1.content" in layout.paths
    assert files.detect_mapping(file, layout) == ColumnMapping("messages.0.content", None)
    rows = read(file, ColumnMapping("messages.0.content", "messages.1.content"))
    assert pairs(rows) == [("first question", "ok"), ("second question", "ok")]


def test_a_list_of_one_label_is_that_label(file: Path) -> None:
    lines = ['{"text": "a", "label": ["x"]}', '{"text": "b", "label": ["x", "y"]}',
             '{"text": "c", "label": []}', '{"text": "d"}']  # fmt: skip
    file.write_text("\n".join(lines))
    rows = read(file, ColumnMapping("text", "label"))
    assert pairs(rows) == [("a", "x")]
    assert [row.reason for row in rows if isinstance(row, RejectedRow)] == [
        "The value is a list of 2, not a text. Choose one of the nested fields.",
        "The value is a list of 0, not a text. Choose one of the nested fields.",
        "This field is missing.",
    ]
    assert pairs(read(file, ColumnMapping("text", "label.1"))) == [("b", "y")]


def test_one_that_breaks_off_keeps_what_came_before(file: Path) -> None:
    file.write_text(json.dumps(ROWS)[:-12])
    good, bad = read(file, ColumnMapping("text", "label"))
    assert isinstance(good, ExampleRow)
    assert isinstance(bad, RejectedRow)
    assert bad.row == 2
    assert "The file is not JSON from here on" in bad.reason


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[" * 100_000, "more than 50 levels"),
        ('[{"a":' * 30_000, "more than 50 levels"),
        ('{"data": ' + "[" * 1_000, "more than 50 levels"),
        ("[1, 2, 3]", "not an object"),
        ('{"version": 1,\n"name": "x"}', "no list of rows"),
        ("[]", "holds no object"),
        ("[{]", "not JSON from here on"),
    ],
)
def test_what_is_no_list_of_rows_says_so(file: Path, content: str, says: str) -> None:
    file.write_text(content)
    with pytest.raises(FormatError, match=says):
        files.detect_layout(file)


def test_memory_is_bounded(file: Path) -> None:
    """One line of many megabytes, and in it a row that is too large to be held."""
    with file.open("w") as out:
        out.write('[{"text": "one", "label": "a"},')
        out.write('{"text": [' + "{}," * 210_000 + "{}]},")
        out.write(",".join(f'{{"text": "text {n}", "label": "b"}}' for n in range(9_000)))
        out.write("]")
    tracemalloc.start()
    layout = files.detect_layout(file)
    rows = 0
    bad = []
    for row in files.read_checked_rows(file, layout, ColumnMapping("text", "label")):
        rows += 1
        bad += [row] if isinstance(row, RejectedRow) else []
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert rows == 9_002
    assert [(row.row, row.reason) for row in bad] == [(2, "The row has more than 200,000 values.")]
    assert peak < 25


@pytest.mark.django_db
def test_nested_fields_can_be_chosen_on_the_page(alice: User, client: Client) -> None:
    client.force_login(alice)
    file = SimpleUploadedFile("export.json", json.dumps(LABEL_STUDIO).encode())
    where = client.post("/datasets/new/", {"file": file})["Location"]
    page = client.get(where).content.decode()
    assert "JSON, a list of rows, UTF-8" in page
    label = "annotations.0.result.0.value.choices.0"
    assert f'name="column" value="{label}"' in page
    assert "<option>data.source</option>" in page  # can be added
    assert (
        'name="column" value="data.source"'
        in client.get(
            where, {"column": ["data.text", label], "role": ["text", "label"], "add": "data.source"}
        ).content.decode()
    )
    assert "hello there" in page
    chosen = {"column": ["data.text", "data.source"], "role": ["text", "label"]}
    client.post(where, chosen | {"name": "LS"})
    dataset = Dataset.objects.owned_by(alice).get()
    assert dataset.label_counts == {"mail": 2}
    assert "id" in dataset.extra_columns


@pytest.mark.django_db
def test_over_the_api(api: Client) -> None:
    file = SimpleUploadedFile("export.json", json.dumps(LABEL_STUDIO).encode())
    made = api.post("/api/v1/datasets", {"file": file}).json()
    assert made["labels"] == {"greeting": 1, "farewell": 1}
    file.seek(0)
    answer = api.post("/api/v1/datasets", {"file": file, "text_column": "data.txt"})
    assert "No column “data.txt”" in answer.json()["detail"]
