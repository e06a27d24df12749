"""The text of a PDF, read in a process of its own: a file may be made to take all memory and time.

`python -m apps.chat.pdf_text FILE` prints it. Pure.
"""

import resource
import sys

MAX_PAGES = 500
CPU_SECONDS = 20
MEMORY_BYTES = 1024**3


def main(path: str) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    from pypdf import PdfReader  # under the limits above
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            return 3
        for page in reader.pages[:MAX_PAGES]:
            text = page.extract_text().encode("utf-8", "replace")
            sys.stdout.buffer.write(text + b"\n\n")
    except (PyPdfError, ValueError, KeyError, RecursionError, MemoryError):
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
