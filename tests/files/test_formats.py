"""Files as people have them. Each case is a file and what must come out of it."""

import csv
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from apps import files
from apps.files import ColumnMapping, ExampleRow, FileKind, FormatError, RejectedRow
from apps.files.readers import encoding as encodings

TEXT_LABEL = ColumnMapping("text", "label")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "upload"


def read(path: Path, mapping: ColumnMapping = TEXT_LABEL) -> list[ExampleRow | RejectedRow]:
    return list(files.read_checked_rows(path, files.detect_layout(path), mapping))


def pairs(rows: list[ExampleRow | RejectedRow]) -> list[tuple[str, str]]:
    return [(row.text, row.label) for row in rows if isinstance(row, ExampleRow)]


def rejected(rows: list[ExampleRow | RejectedRow]) -> list[RejectedRow]:
    return [row for row in rows if isinstance(row, RejectedRow)]


@pytest.mark.parametrize(
    ("content", "separator", "encoding"),
    [
        (b"text,label\nhello,a\nbye,b\n", ",", "utf-8-sig"),
        (b"text;label\nhello, you;a\nbye, you;b\n", ";", "utf-8-sig"),
        (b"text\tlabel\nhello, you\ta\nbye; you\tb\n", "\t", "utf-8-sig"),
        (b"text|label\r\nhello|a\r\nbye|b\r\n", "|", "utf-8-sig"),
        (b"\xef\xbb\xbftext,label\nhello,a\n", ",", "utf-8-sig"),
        ("text,label\nGrüße,a\n".encode(), ",", "utf-8-sig"),
        ("text,label\nGrüße aus Köln,a\n".encode("cp1252"), ",", "cp1252"),
        ("text,label\nGrüße,a\n".encode("utf-16"), ",", "utf-16"),
        (b"text,label\rhello,a\rbye,b\r", ",", "utf-8-sig"),
    ],
)
def test_finds_separator_and_encoding(
    file: Path, content: bytes, separator: str, encoding: str
) -> None:
    file.write_bytes(content)
    layout = files.detect_layout(file)
    assert (layout.separator, layout.encoding) == (separator, encoding)
    assert layout.columns == ("text", "label")
    rows = read(file)
    assert not rejected(rows)
    assert pairs(rows)[0][0] in {"hello", "hello, you", "Grüße", "Grüße aus Köln"}


def test_line_breaks_in_quotes_belong_to_the_text(file: Path) -> None:
    file.write_bytes(b'text,label\n"two\r\nlines, ""quoted""",a\nb,c\n')
    assert pairs(read(file)) == [('two\r\nlines, "quoted"', "a"), ("b", "c")]


def test_stray_spaces_in_names_and_labels_go(file: Path) -> None:
    file.write_bytes(b" text , label\t\n hello ,  a   b \nbye,a b\n")
    layout = files.detect_layout(file)
    assert layout.columns == ("text", "label")
    assert layout.cleaned_names == 2
    assert pairs(read(file)) == [(" hello ", "a b"), ("bye", "a b")]


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("only a text", "label", "only 1 of 2"),
        (",a", "text", "empty"),
        ("   ,a", "text", "empty"),
        ("hello,", "label", "empty"),
        ("a, b,c", "", "3 cells"),
        ("a\0b,c", "text", "NUL"),
        (f"{'x' * 100_001},a", "text", "100,001 characters"),
        (f"hello,{'x' * 201}", "label", "201 characters"),
        (f"{'x' * 1_000_001},a", "", "1,000,000 characters"),
        (f"{'x' * 4_000_001},a", "", "4,000,000 characters"),
        ("," * 1_000_000 + "x", "", "1,000,001 cells"),
    ],
)
def test_a_bad_row_says_where_and_why(file: Path, line: str, column: str, reason: str) -> None:
    file.write_text(f"text,label\ngood,a\n{line}\nalso good,b\n")
    rows = read(file)
    assert pairs(rows) == [("good", "a"), ("also good", "b")]
    (bad,) = rejected(rows)
    assert (bad.row, bad.column) == (3, column)
    assert reason in bad.reason


def test_a_byte_that_is_not_utf8_costs_its_row_only(file: Path) -> None:
    file.write_bytes("text,label\nÄÖÜ äöü,a\n".encode() + b"caf\xe9,b\nfine,c\n")
    rows = read(file)
    assert pairs(rows) == [("ÄÖÜ äöü", "a"), ("fine", "c")]
    assert "0xE9" in rejected(rows)[0].reason


LARGE = {"SAMPLE_BYTES": 900, "CHUNK_BYTES": 300, "PIECE_BYTES": 100}


@pytest.mark.parametrize("odd", ["ß", "ü" * 40])
def test_of_a_large_file_pieces_are_looked_at(
    file: Path, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LARGE.items():
        monkeypatch.setattr(encodings, name, value)
    rows = ["text,label"] + [f"row {number} {odd},a" for number in range(2_000)]
    file.write_bytes("\n".join(rows).encode("cp1252"))
    assert (
        sum(len(part) for piece in encodings.sampled_pieces(file, False) for part in piece) <= 900
    )
    assert files.detect_layout(file).encoding == "cp1252"
    file.write_bytes("\n".join(rows).encode())
    assert files.detect_layout(file).encoding == "utf-8-sig"
    assert encodings.confirm_encoding(file, "utf-8-sig") == "utf-8-sig"


def test_where_the_pieces_were_ascii_all_of_the_file_decides(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LARGE.items():
        monkeypatch.setattr(encodings, name, value)
    file.write_bytes(b"text,label\n" + b"plain,a\n" * 60 + b"caf\xe9,a\n" + b"plain,a\n" * 500)
    assert files.detect_layout(file).encoding == "utf-8-sig"
    assert encodings.confirm_encoding(file, "utf-8-sig") == "cp1252"


def test_decoding_errors_report_line_and_byte(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LARGE.items():
        monkeypatch.setattr(encodings, name, value)
    start = "text,label\ncafé,a\n".encode() + b"plain,a\n" * 60
    file.write_bytes(start + b"caf\xe9,a\n" * 5 + b"plain,a\n" * 500)
    assert files.detect_layout(file).encoding == "utf-8-sig"
    with pytest.raises(FormatError, match=f"0xE9 in line 63 .byte {len(start) + 3} of the file"):
        encodings.confirm_encoding(file, "utf-8-sig")


def test_an_unclosed_quote_does_not_swallow_the_file(file: Path) -> None:
    rest = "".join(f"text {'x' * 600} number {n},label\n" for n in range(2_000))
    file.write_text(f'text,label\nfirst,a\n"unclosed,b\n{rest}')
    rows = read(file)
    assert rejected(rows) == []
    assert len(pairs(rows)) == 2_002
    assert (f"text {'x' * 600} number 1999", "label") in pairs(rows)


def test_empty_columns_at_the_end_do_no_harm(file: Path) -> None:
    file.write_bytes(b"text,label\nhello,a,,\n\nbye,b\n")
    assert pairs(read(file)) == [("hello", "a"), ("bye", "b")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b" \n \n", "empty"),
        (b"," * 1_000_000 + b"\nx,y\n", "1,000,001 columns"),
        (b"PK\x03\x04...", "Excel"),
        (b"\x1f\x8b...", "gzip"),
        (b"PAR1...", "Parquet"),
        (bytes(range(256)) * 40, "not a text file"),
        (b"{}\n", "No line has an object"),
        (b"x" * 5_000_000, "4,000,000"),
    ],
)
def test_a_file_that_is_no_table_says_so(file: Path, content: bytes, says: str) -> None:
    file.write_bytes(content)
    with pytest.raises(FormatError, match=says):
        files.detect_layout(file)


def test_jsonl(file: Path) -> None:
    lines = [
        '{"text": "hello", "label": "a", "split": "TEST"}',
        '{"text": 5, "label": 7}',
        "",
        "not json",
        '["a"]',
        '{"text": "nested", "label": ["a", "b"]}',
        '{"text": "no label"}',
        '{"text": null, "label": "a"}',
        "[" * 100_000,
        '{"text": "half \\ud800", "label": "a"}',
    ]
    file.write_text("\n".join(lines))
    layout = files.detect_layout(file)
    assert layout.kind is FileKind.JSONL
    rows = list(files.read_checked_rows(file, layout, ColumnMapping("text", "label", "split")))
    assert pairs(rows) == [("hello", "a"), ("5", "7")]
    assert isinstance(rows[0], ExampleRow)
    assert rows[0].split == "test"
    assert [(row.row, row.column) for row in rejected(rows)] == [
        (4, ""), (5, ""), (6, "label"), (7, "label"), (8, "text"), (9, ""), (10, "text"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "rows", "expected"),
    [
        (["text", "label"], [], ColumnMapping("text", "label")),
        (["Label", "Text"], [], ColumnMapping("Text", "Label")),
        (["id", "utterance", "intent", "split"], [["1", "hi", "a", "train"]],
         ColumnMapping("utterance", "intent", "split")),
        (["text", "label", "label_text"], [], ColumnMapping("text", "label_text")),
        # By content: long cells are the text, repeated ones the label, splits speak for themselves.
        (["c1", "c2", "c3"],
         [["x", "a long sentence", "train"], ["x", "one more of them", "test"]],
         ColumnMapping("c2", "c1", "c3")),
        # A column called "set" that holds no splits is none.
        (["text", "label", "set"], [["a", "b", "kitchen"]], ColumnMapping("text", "label")),
    ],
)  # fmt: skip
def test_guesses_columns(
    columns: list[str], rows: list[list[str]], expected: ColumnMapping
) -> None:
    assert files.guess_mapping(columns, rows) == expected


def test_a_file_without_a_header_is_seen(file: Path) -> None:
    file.write_bytes(b"where is my card,card\nmy card is lost,card\nhello,greeting\n")
    layout = files.detect_layout(file)
    assert not layout.header
    mapping = files.guess_mapping(layout.columns, files.sample_rows(file, layout))
    assert mapping == ColumnMapping("column 1", "column 2")
    assert pairs(read(file, mapping))[0] == ("where is my card", "card")


def test_an_unknown_split_is_rejected(file: Path) -> None:
    file.write_bytes(b"text,label,split\na,x,Train\nb,x,dev\nc,x,tset\nd,x,\n")
    rows = read(file, ColumnMapping("text", "label", "split"))
    assert [row.split for row in rows if isinstance(row, ExampleRow)] == [
        "train",
        "validation",
        None,
    ]
    assert rejected(rows) == [
        RejectedRow(4, "split", "“tset” is not a valid split. Use train, validation or test.")
    ]


@pytest.mark.parametrize(
    ("header", "is_ours"),
    [
        ('\ufeff"text",label', True),
        ('\ufeff"text","a, b"', True),
        ('\ufeff"text"', True),
        ("text,label,split", True),  # before the quotes told
        ("text,label", False),
        ('"text","label"', False),  # another program quotes all names
        ('"text"', False),
        ('"text, all",label', False),
    ],
)
def test_an_apostrophe_goes_from_our_own_files_alone(
    file: Path, header: str, is_ours: bool
) -> None:
    rest = ",a" * (len(next(csv.reader([header]))) - 1)
    file.write_text(f"{header}\r\n'=1+1{rest}\r\nplain{rest}\r\n", encoding="utf-8", newline="")
    layout = files.detect_layout(file, name="a.csv")
    first = next(iter(files.sample_rows(file, layout)))
    assert first[0] == ("=1+1" if is_ours else "'=1+1")


def test_memory_is_bounded(file: Path) -> None:
    with file.open("w") as out:
        out.write("text,label\n")
        for number in range(500):
            out.write(f"a text of some length with the number {number},label {number % 7}\n")
        out.write("x" * 30_000_000)
    layout = files.detect_layout(file)
    tracemalloc.start()
    count = sum(1 for _ in files.read_checked_rows(file, layout, TEXT_LABEL))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 501
    assert peak < 25_000_000


def test_extra_columns_are_those_with_no_part_and_not_ignored() -> None:
    layout = files.Layout(FileKind.CSV, "utf-8-sig", ("text", "label", "id", "source"))
    mapping = ColumnMapping("text", "label")
    assert files.extra_columns(layout, mapping) == ("id", "source")
    assert files.extra_columns(layout, replace(mapping, ignored=("id",))) == ("source",)
    assert files.extra_columns(layout, replace(mapping, keep_extra=False)) == ()
