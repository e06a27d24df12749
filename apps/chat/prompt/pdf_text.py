"""The text of a PDF. Runs under `core.bounded`: a file may be made to take all memory and time.

`python -m apps.chat.prompt.pdf_text FILE` prints it. Pure.
"""

import sys

from apps.core.sandbox import Limits

MAX_PAGES = 500
DAMAGED, ENCRYPTED = 2, 3
# What is printed beyond the most characters that are taken, four bytes each, is never read.
LIMITS = Limits(cpu_seconds=20, memory_bytes=1024**3, seconds=30.0, output_bytes=4_000_000)


def main(path: str) -> int:
    from pypdf import PdfReader  # here: whoever only wants the limits does without
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
