"""Options of an import: their JSON, and the checks of columns."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.datasets.imports.options import ImportOptions, check_files, check_mapping
from apps.files import ColumnMapping, FileKind, FormatError, Layout, Quoting, ReadOptions
from tests.datasets import factories

LAYOUT = Layout(FileKind.CSV, "utf-8-sig", ("text", "label", "sub", "split"))


@pytest.mark.parametrize(
    "read",
    [ReadOptions(), ReadOptions(False, ";", "cp1252", "Sheet 1", Quoting.STANDARD)],
)
def test_options_survive_their_json(read: ReadOptions) -> None:
    mapping = ColumnMapping(
        "a", "b", "c", second_label="d", keep_unlabelled=True, ignored=("e", "f")
    )
    options = ImportOptions("Name", mapping, read)
    assert ImportOptions.from_json(json.loads(json.dumps(options.to_json()))) == options


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        (ColumnMapping("nope", "label"), "No column “nope”. Available columns: “text”, “label”"),
        (ColumnMapping("text", "nope"), "No column “nope”"),
        (ColumnMapping("text", None, second_label="sub"), "first label column before a second"),
        (ColumnMapping("text", "text"), "different columns for text and label"),
        (ColumnMapping("text", "label", second_label="text"), "different columns"),
        (ColumnMapping("text", "label", second_label="label"), "two different label columns"),
        (ColumnMapping("text", "label", "label"), "split column other than the text or label"),
        (ColumnMapping("text", "label", "text"), "split column other than the text or label"),
    ],
)
def test_check_mapping_refuses(mapping: ColumnMapping, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        check_mapping(LAYOUT, mapping)


@pytest.mark.parametrize(
    "mapping",
    [
        ColumnMapping("text", None),
        ColumnMapping("text", "label", "split"),
        ColumnMapping("text", "label", second_label="sub"),
    ],
)
def test_check_mapping_accepts(mapping: ColumnMapping) -> None:
    check_mapping(LAYOUT, mapping)


@pytest.mark.parametrize("content", [b"%PDF-1.7", b"satz,art\nhallo,a\n"])
def test_check_files_of_one_file_does_not_name_it(alice: User, content: bytes) -> None:
    upload = factories.upload(alice, content)
    with pytest.raises(FormatError) as caught:
        check_files(upload, ImportOptions("x", ColumnMapping("text", "label")))
    assert "rows.csv" not in str(caught.value)


def test_check_files_returns_each_layout(alice: User) -> None:
    upload = factories.upload(alice, b"text;label\nhello;a\nbye;b\n")
    options: dict[str, Any] = {"mapping": ColumnMapping("text", "label")}
    [layout] = check_files(upload, ImportOptions("x", **options))
    assert (layout.separator, layout.columns) == (";", ("text", "label"))
