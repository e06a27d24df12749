"""The text of a PDF. Runs in `core.sandbox`: a hostile file could take all memory and time.

`python -m apps.chat.attachments.pdf_text FILE` prints it. Pure.
"""

import sys

from apps.core.sandbox import Limits

MAX_PAGES = 500
DAMAGED, ENCRYPTED = 2, 3
# The output holds the most characters of an attachment, four bytes each, and more.
LIMITS = Limits(cpu_seconds=20, memory_bytes=1024**3, seconds=30.0, output_bytes=4_000_000)


def main(path: str) -> int:
    from pypdf import PdfReader  # slow to import, and only needed in the sandbox
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            return ENCRYPTED
        for page in reader.pages[:MAX_PAGES]:
            text = page.extract_text().encode("utf-8", "replace")
            sys.stdout.buffer.write(text + b"\n\n")
    except (PyPdfError, ValueError, KeyError, RecursionError, MemoryError):
        return DAMAGED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
