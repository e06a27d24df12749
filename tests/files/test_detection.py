"""The kind of a file, by its first bytes and lines."""

from pathlib import Path

import pytest

from apps.files.detection import EMPTY, detect_layout
from apps.files.errors import FormatError
from apps.files.layout import MAX_LINE, FileKind


def written(folder: Path, text: str) -> Path:
    path = folder / "file"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[removed],spam\n[deleted],ham\n", FileKind.CSV),
        ('[{"text": "a"}]', FileKind.JSON),
        ('[\n  {"text": "a"}\n]', FileKind.JSON),
        ('{"data": [{"text": "a"}]}', FileKind.JSON),
        ('{\n "data": [{"text": "a"}]\n}', FileKind.JSON),
        ('{"text": "a"}', FileKind.JSONL),
        ('{"text": "a", "parts": [{"b": 1}]}', FileKind.JSONL),
        ('{"text": "a"}\n{"text": "b"}\n', FileKind.JSONL),
    ],
)
def test_detect_layout_tells_brackets_of_a_text_from_json(
    tmp_path: Path, text: str, kind: FileKind
) -> None:
    assert detect_layout(written(tmp_path, text)).kind is kind


def test_detect_layout_refuses_a_file_that_is_one_long_line(tmp_path: Path) -> None:
    path = written(tmp_path, "x" * (MAX_LINE + 1))
    with pytest.raises(FormatError, match=f"a line of more than {MAX_LINE:,} characters"):
        detect_layout(path)


@pytest.mark.parametrize("text", ["", " \n\n\t\n"])
def test_detect_layout_refuses_a_file_without_a_text(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError) as refused:
        detect_layout(written(tmp_path, text))
    assert str(refused.value) == EMPTY
