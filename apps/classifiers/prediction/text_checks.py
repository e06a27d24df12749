"""Check texts before they are classified."""

from collections.abc import Sequence

MAX_TEXT = 100_000  # characters


def check_texts(texts: Sequence[str]) -> list[str]:
    """List what is wrong with each text that cannot be classified, as sentences."""
    problems = []
    for place, text in enumerate(texts, start=1):
        if not text.strip():
            problems.append(f"Text {place} is empty.")
        elif len(text) > MAX_TEXT:
            problems.append(f"Text {place} is too long. The limit is {MAX_TEXT:,} characters.")
        elif not _is_whole(text):
            problems.append(f"Text {place} contains half of a surrogate pair.")
    return problems


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
