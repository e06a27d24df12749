"""Every line of a file ends in a row or in a rejection, whatever quotes are in it."""

import csv
import io
import tempfile
from functools import partial
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from apps import files
from apps.files import ColumnMapping, ExampleRow, LineCounts, Quoting, ReadOptions, RejectedRow
from apps.files.readers.quoting import split_rows
from tests.cpu_time import GROWTH, growth_problem

QUICK = settings(max_examples=60, deadline=None)
SEPARATORS = [",", ";", "\t"]
FIRST = ColumnMapping("text", "label")


def read(
    content: str, options: ReadOptions | None = None
) -> tuple[list[ExampleRow | RejectedRow], LineCounts]:
    with tempfile.NamedTemporaryFile("w", newline="", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        path = Path(file.name)
        layout = files.detect_layout(path, options=options or ReadOptions(header=True))
        mapping = FIRST if "text" in layout.columns else files.guess_mapping(layout.columns, [])
        counts = LineCounts()
        found = list(files.read_rows(path, layout, mapping, counts=counts))
        return [row for _, row in found], counts


def texts(rows: list[ExampleRow | RejectedRow]) -> list[str]:
    return [row.text for row in rows if isinstance(row, ExampleRow)]


words = st.text("abc de'", min_size=1, max_size=12).map(str.strip).filter(bool)
stray = st.sampled_from(['"{}', '{}"', '{} "{}', '{} "{}" {}', '5" {}', "{}"])


@given(
    separator=st.sampled_from(SEPARATORS),
    cells=st.lists(st.tuples(words, stray), min_size=3, max_size=40),
    label_first=st.booleans(),
)
@QUICK
def test_stray_quotes_swallow_no_line(
    separator: str, cells: list[tuple[str, str]], label_first: bool
) -> None:
    """No cell needs its quotes, so each line is a row of its own."""
    lines = []
    for place, (word, written) in enumerate(cells):
        text = written.replace("{}", f"{word} n{place}")
        pair = (f"label{place % 3}", text) if label_first else (text, f"label{place % 3}")
        lines.append(separator.join(pair))
    head = ("label", "text") if label_first else ("text", "label")
    rows, counts = read("\n".join([separator.join(head), *lines]) + "\n")
    assert len(rows) == len(lines) == counts.rows
    assert [isinstance(row, ExampleRow) for row in rows] == [True] * len(rows)
    for place, text in enumerate(texts(rows)):
        assert f"n{place}" in text
        assert "\n" not in text


@given(
    separator=st.sampled_from(SEPARATORS),
    cells=st.lists(
        st.tuples(st.text('ab ",;\t\n', max_size=30), st.sampled_from(["a", "b"])),
        min_size=1,
        max_size=20,
    ),
    all_quoted=st.booleans(),
)
@QUICK
def test_what_a_csv_writer_wrote_is_read_as_it_was(
    separator: str, cells: list[tuple[str, str]], all_quoted: bool
) -> None:
    given = [(f"n{place}{text}z", label) for place, (text, label) in enumerate(cells)]
    out = io.StringIO()
    writer = csv.writer(
        out, delimiter=separator, quoting=csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    )
    writer.writerow(["text", "label"])
    writer.writerows(given)
    rows, _ = read(
        out.getvalue(), ReadOptions(True, separator, "utf-8-sig", quoting=Quoting.STANDARD)
    )
    assert texts(rows) == [text for text, _ in given]


@given(
    separator=st.sampled_from(SEPARATORS),
    lines=st.lists(st.text('ab",;\t', max_size=20), max_size=60),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([None, *Quoting]),
)
@QUICK
def test_every_line_is_accounted_for(
    separator: str, lines: list[str], end: str, quoting: Quoting | None
) -> None:
    """Each line has a mark of its own, found in exactly one row, or it is in a rejected one."""
    marked = [f"<{place}>{line}" for place, line in enumerate(lines)]
    content = end.join([f"text{separator}label", *marked]) + end
    with tempfile.NamedTemporaryFile("w", newline="", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        options = ReadOptions(True, separator, "utf-8-sig", quoting=quoting)
        layout = files.detect_layout(Path(file.name), options=options)
        counts = LineCounts()
        records = list(files.read_records(Path(file.name), layout, counts=counts))
    found = ["".join(cells.values()) for _, cells in records if not isinstance(cells, RejectedRow)]
    assert counts.lines == len(lines) + 1
    assert counts.rows == len(records)
    assert [number for number, _ in records] == list(range(2, len(records) + 2))
    places = [place for place in range(len(lines)) if any(f"<{place}>" in text for text in found)]
    assert sum(text.count("<") for text in found) == len(places)
    if quoting is Quoting.NONE:
        assert len(records) == len(lines)


SMS = [f"{'spam' if n % 7 == 0 else 'ham'}\tmessage number {n} hello" for n in range(1_000)]
SMS[100] = 'ham\t"Please call me later, options 100'
SMS[400] = 'ham\t"Please call me later, options 400'
SMS[700] = 'ham\t"Gimme" a few minutes'


@pytest.mark.parametrize("name", ["a.tsv", "a", "a.txt"])
def test_a_table_without_quoting(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("\n".join(SMS))
    layout = files.detect_layout(path, name=name)
    assert layout.quoting is Quoting.NONE
    assert "quotes read as characters" in layout.description
    rows = list(files.read_checked_rows(path, layout, ColumnMapping("column 2", "column 1")))
    assert len(texts(rows)) == 1_000
    assert texts(rows)[700] == '"Gimme" a few minutes'


@pytest.mark.parametrize(
    ("place", "first", "second"),
    [
        (0, '"Great, really,label1', '"Awful" she options,label2'),
        (1, 'label1,"Great movie', 'label2,"Awful movie'),
        (1, 'label1,"Great movie', 'label2,on a screen of 15"'),
    ],
)
@pytest.mark.parametrize("beyond", [False, True])
def test_split_rows_gives_lines_back_after_two_stray_quotes(
    place: int, first: str, second: str, beyond: bool
) -> None:
    """Also where the first lines of the file, by which it is judged, use quotes properly."""
    names = ("text", "label") if place == 0 else ("label", "text")
    lines = [f"{names[0]},{names[1]}"]
    quoted = '"well, quoted",label0' if place == 0 else 'label0,"well, quoted"'
    lines += [quoted] * 5 if beyond else []
    begin = len(lines)
    for n in range(500):
        pair = (f"text number {n}", f"label{n % 3}")
        lines.append(",".join(pair if place == 0 else pair[::-1]))
    lines[begin + 50], lines[begin + 300] = first, second
    rows, counts = read("\n".join(lines))
    assert len(rows) == len(lines) - 1
    assert len(texts(rows)) >= len(rows) - 1  # one text holds the separator
    assert sum("text number" in text for text in texts(rows)) == 498
    if beyond:
        assert counts.suspects


def test_an_unclosed_quote_costs_no_other_row() -> None:
    rest = "".join(f"short text number {n},label{n % 3}\n" for n in range(5_000))
    rows, _ = read(f'text,label\nfirst,a\n"well, quoted",a\n"unclosed,b\n{rest}')
    assert len(texts(rows)) == 5_003


def test_texts_of_several_lines_stay_whole() -> None:
    letter = "Dear Sir,\nthank you, but no,\nit is, well, late.\n\nBob"
    short = "Hello,\nbye"
    written = io.StringIO()
    csv.writer(written).writerows(
        [("text", "label"), (letter, "a"), ("plain", "b"), (short, "a"), ('say "hi"', "b")]
    )
    rows, counts = read(written.getvalue())
    assert texts(rows) == [letter, "plain", short, 'say "hi"']
    assert (counts.multiline_rows, counts.longest, counts.lines, counts.rows) == (2, 5, 10, 4)
    assert "10 lines, 4 rows. 2 rows hold line breaks, the longest 5 lines" in counts.description


def test_a_quote_inside_quotes_that_nobody_doubled() -> None:
    rows, counts = read('text,label\n"He options "hi, you" to me",a\nfine,b\n')
    assert texts(rows) == ['He options "hi, you" to me', "fine"]
    assert counts.suspects == [2]


def test_a_person_can_say_that_lines_in_quotes_are_one_cell() -> None:
    content = 'label,text\na,"one\nb,c\nd,e\nlast,two"\nb,"x, y"\n'
    assert len(read(content)[0]) == 5
    rows, _ = read(content, ReadOptions(header=True, quoting=Quoting.STANDARD))
    assert texts(rows) == ["one\nb,c\nd,e\nlast,two", "x, y"]


@pytest.mark.parametrize(
    "line",
    ['a,"\n', 'z","y\n', '"a,"a,"a,"a\n', '"\n', 'a""b,"c""d\n', '"' * 40 + "\n", '""a,"b\n'],
)
def test_time_grows_with_the_file_alone(line: str) -> None:
    def split(count: int) -> None:
        for _ in split_rows(['x,"y\n', *[line] * count], ",", quoting=Quoting.AUTO, width=2):
            pass

    assert growth_problem(partial(split, 4_000), partial(split, GROWTH * 4_000)) == ""


@pytest.mark.django_db
def test_the_preview_says_what_lines_became(alice: User, client: Client) -> None:
    client.force_login(alice)
    content = 'label,text\na,"two\nlines"\nb,plain\nb,"x, y"\na,on a 15" screen\na,"loose\n'
    file = SimpleUploadedFile("a.csv", content.encode())
    where = client.post("/datasets/new/", {"file": file})
    page = client.get(where["Location"]).content.decode()
    assert "7 lines" in page
    assert "Starts with a stray quote" in page
    assert "5 rows" in page
    chosen = {"column": ["text", "label"], "role": ["text", "label"], "quoting": "none"}
    page = client.get(where["Location"], chosen).content.decode()
    assert "4 rows" in page
    assert "stray quote" not in page


@pytest.mark.django_db
def test_quoting_over_the_api(api: Client) -> None:
    content = b'label,text\na,"one"\nb,"two"\n'
    for quoting, text in (("auto", "one"), ("standard", "one"), ("none", '"one"')):
        file = SimpleUploadedFile("a.csv", content)
        made = api.post("/api/v1/datasets", {"file": file, "quoting": quoting}).json()
        rows = api.get(f"/api/v1/datasets/{made['id']}/examples").json()["items"]
        assert rows[0]["text"] == text
    assert made["notes"][0].endswith("3 lines, 2 rows.")
    file = SimpleUploadedFile("a.csv", content)
    assert api.post("/api/v1/datasets", {"file": file, "quoting": "odd"}).status_code == 422
