"""The text of a document. Runs in `core.sandbox`: a hostile file could take all memory and time.

`python -m apps.chat.knowledge.document_text FILE` prints lines of JSON: first the number of pages
(null if it has none), then page and text of each part. Pure.
"""

import json
import sys
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree

from apps.core.sandbox import Limits

MAX_PAGES = 1000
MAX_XML_BYTES = 50 * 1024**2
DAMAGED, ENCRYPTED, NO_TEXT_FILE, TOO_LARGE = 2, 3, 4, 5
LIMITS = Limits(
    cpu_seconds=60,
    memory_bytes=1024**3,
    seconds=90.0,
    output_bytes=16_000_000,
    line_bytes=4_000_000,
)
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
PART_CHARACTERS = 20_000


def main(path: str) -> int:
    with open(path, "rb") as file:  # noqa: PTH123 - Path is slower to import
        start = file.read(1024)
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%PDF-"):
        return _print_pdf(path)
    if start.startswith(b"PK\x03\x04"):
        return _print_docx(path)
    return _print_text(path)


def _write(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")


def _print(page: int | None, text: str) -> None:
    # Half a surrogate pair cannot be stored.
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    _write([page, text])


def _print_pdf(path: str) -> int:
    from pypdf import PdfReader  # slow to import, and only needed here
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            return ENCRYPTED
        count = len(reader.pages)
        if count > MAX_PAGES:
            return TOO_LARGE
        _write(count)
        for number, page in enumerate(reader.pages, start=1):
            _print(number, page.extract_text())
            sys.stdout.flush()
    except (PyPdfError, ValueError, KeyError, RecursionError, MemoryError):
        return DAMAGED
    return 0


def _print_docx(path: str) -> int:
    try:
        with zipfile.ZipFile(path) as archive:
            if "word/document.xml" not in archive.namelist():
                return NO_TEXT_FILE
            if archive.getinfo("word/document.xml").flag_bits & 1:
                return ENCRYPTED
            with archive.open("word/document.xml") as part:
                data = part.read(MAX_XML_BYTES + 1)
        if len(data) > MAX_XML_BYTES:
            return TOO_LARGE
        _write(None)
        # Expat limits the growth of entities, and the process has limits of its own.
        root = ElementTree.fromstring(data)  # noqa: S314
        for text in _parts(_paragraphs(root)):
            _print(None, text)
    except (zipfile.BadZipFile, ElementTree.ParseError, ValueError, KeyError, RuntimeError):
        return DAMAGED
    except (MemoryError, NotImplementedError, OSError, EOFError):
        return DAMAGED
    return 0


def _paragraphs(root: ElementTree.Element) -> Iterator[str]:
    """Yield the paragraphs of a Word document; headings as those of Markdown."""
    for paragraph in root.iter(f"{WORD}p"):
        pieces = []
        for node in paragraph.iter():
            if node.tag == f"{WORD}t":
                pieces.append(node.text or "")
            elif node.tag == f"{WORD}tab":
                pieces.append("\t")
            elif node.tag in {f"{WORD}br", f"{WORD}cr"}:
                pieces.append("\n")
        text = "".join(pieces).strip()
        style = paragraph.find(f"{WORD}pPr/{WORD}pStyle")
        name = "" if style is None else style.get(f"{WORD}val", "")
        if text and name.lower().startswith(("heading", "title")):
            level = int(name[-1]) if name[-1:] in "123456" and name[-1:] else 1
            text = f"{'#' * level} {' '.join(text.split())}"
        if text:
            yield text


def _parts(paragraphs: Iterator[str]) -> Iterator[str]:
    """Yield paragraphs joined to parts of bounded size."""
    part: list[str] = []
    size = 0
    for text in paragraphs:
        if part and (size > PART_CHARACTERS or text.startswith("#")):
            yield "\n\n".join(part)
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield "\n\n".join(part)


def _print_text(path: str) -> int:
    with open(path, "rb") as file:  # noqa: PTH123
        data = file.read()
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            text = data.decode("utf-16")
        elif b"\0" in data:
            return NO_TEXT_FILE
        else:
            text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return NO_TEXT_FILE
    _write(None)
    paragraphs = text.replace("\r\n", "\n").split("\n\n")
    for part in _parts(paragraph for paragraph in paragraphs if paragraph.strip()):
        for start in range(0, len(part), 500_000):
            _print(None, part[start : start + 500_000])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
